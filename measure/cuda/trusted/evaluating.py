"""The bounds of a program's outputs, made on a device from its inputs there."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np

from tilewright.measure.cuda.buffers import Buffers
from tilewright.measure.cuda.device import DeviceError
from tilewright.measure.cuda.trusted import oracle
from tilewright.measure.cuda.trusted.programs import expect_program, rows_of_a_piece, rows_operand
from tilewright.measure.drawing.programs import ProgramDraw
from tilewright.measure.drawing.sampling import points
from tilewright.spaces.derivation.rounding.carried import carried_linearly
from tilewright.spaces.derivation.rounding.rows import Rows, row_axis
from tilewright.spaces.language import Program

HELD_POINTS, MOST_HELD = 1 << 14, 1 << 17
"""Points of the rows that the host evaluates, too; one row at least, if it has no more than so
many: more would take it longer than building a kernel."""
AGREEING = 0.99
"""Share of these rows' elements: all but those about which rounding decides."""


def evaluate(buffers: Buffers, draw: ProgramDraw, pause: Callable[[], None]) -> None:
    """Write what is allowed of each output; anything of rows that the draw does not judge.

    ``pause`` is called before each piece, and may raise to end the work.
    """
    program = draw.program
    axis, piece = row_axis(program), rows_of_a_piece(program)
    if axis is None or (piece is None and draw.rows is None):
        with buffers.working(expect_program(program)) as call:
            call()
        return
    which = _rows(draw, axis)
    count = min(piece or len(which), len(which))
    rows = rows_operand(count)
    buffers.add(rows)
    for output in draw.workload.outputs:
        buffers.bound(oracle.anything(output, buffers.blocks))()
    with buffers.working(expect_program(program, count)) as call:
        for start in range(0, len(which), count):
            pause()
            part = which[start : start + count]
            buffers.write(rows, np.pad(part, (0, count - len(part)), mode="edge"))
            call()


def hold_to_the_host(buffers: Buffers, draw: ProgramDraw) -> None:
    """:class:`DeviceError` if the host comes to other bounds in some rows of the draw."""
    program = draw.program
    axis, rows = row_axis(program), draw.rows
    if points(program) // (program.extent[axis] if axis else 1) > MOST_HELD:
        return
    if axis is not None:
        which = _rows(draw, axis)
        count = max(1, HELD_POINTS * program.extent[axis] // points(program))
        chosen = np.random.default_rng(0).permutation(len(which))[:count]
        rows = Rows({axis: np.sort(which[chosen])})
    right = replace(draw, rows=by_pairs(program, rows or Rows())).allowed()
    for output in draw.workload.outputs:
        found = buffers.read(oracle.allowed_operand(output))
        wanted = np.stack(right[output.name])
        held = ~np.isinf(wanted)
        if not held.any():
            continue
        agreeing = np.isclose(found[held], wanted[held], 1e-5, 1e-30, equal_nan=True)
        if np.mean(agreeing) < AGREEING:
            raise DeviceError(f"{buffers.device.name} computes otherwise than the host")


def by_pairs(program: Program, rows: Rows) -> Rows:
    """Return the same rows, at all positions of a sum that a state could be carried for: the host
    then looks at all pairs of positions, as a device does, whose bounds are closer."""
    view = carried_linearly(program)
    if view is None:
        return rows
    return Rows({view.position: np.arange(program.extent[view.position])} | {**rows.which})


def _rows(draw: ProgramDraw, axis: str) -> np.ndarray:
    extent = draw.program.extent[axis]
    return np.arange(extent) if draw.rows is None else draw.rows.which[axis]
