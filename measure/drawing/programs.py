"""Fresh random inputs of programs, and the allowed bounds of their outputs.

Evaluating a program with its bounds costs about a quarter of a microsecond for each point of its
largest stage. So a draw of a large program is judged at some of its rows, of some heads or images
(:data:`SEARCH_POINTS`), and each draw at others. The winners of a search are judged at all rows, as
far as :data:`FINAL_POINTS` go. Elements that are not judged may have any value. Where rows depend
on each other and there are more points, one draw serves a search: outputs are poisoned before each
call, so that results of an earlier call do not pass.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from math import prod

import numpy as np

from tilewright.measure.drawing.interfaces import Bounds
from tilewright.measure.drawing.program_sensitivity import (
    mistakes_detected,
    mistakes_planted,
    sensitivity,
)
from tilewright.measure.drawing.sampling import axes_of_rows, points, sample, sizes_of_rows
from tilewright.spaces.derivation.recurrent.view import Recurrence
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.rounding.carried import (
    carried_linearly,
    points_of_steps,
    stages_of,
)
from tilewright.spaces.derivation.rounding.rows import Rows, first_steps, row_axis
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import expected_points, ranges
from tilewright.spaces.numerics.allowance import bounds_dtype
from tilewright.spaces.workloads.workload import Workload

SEARCH_POINTS, FINAL_POINTS = 1 << 19, 1 << 24
"""Points of the largest stage that the host evaluates for a draw, and for a final comparison."""
POINT_SECONDS = 0.25e-6
"""Seconds for one of these points."""
PIECE, PIECE_OF_STATE = 1 << 16, 1 << 20
"""Points evaluated at a time; of a state more, beside those that each walk takes."""
STEPS, POINTS_OF_STEPS, STEP_SECONDS = 256, 1 << 20, 2e-3
"""First steps of stages that read themselves which a search is judged by, points of the largest of
them that a final comparison is, all at a time, and seconds for a step of a stage, however few its
points are."""
ATTEMPTS = 16
"""Draws of a small program, of which the most sensitive is taken."""


WIDE = 25
"""Bytes of an element while it is evaluated: its value and both bounds in float64, and a flag."""
BETWEEN = 128 << 20
"""Bytes of what lies between the operations of an expression."""


@dataclass(frozen=True)
class ProgramDraw:
    """Inputs by operand name, and a ``name`` of what is special about them; outputs are judged at
    ``rows``, at all of them if that is None. The ``workload`` is of any kind: its program counts.
    """

    workload: Workload
    inputs: Mapping[str, np.ndarray]
    rows: Rows | None = None
    pause: Callable[[], None] = lambda: None
    name: str = ""

    @property
    def program(self) -> Program:
        """The program that the workload computes."""
        return self.workload.program

    def allowed(self, out: Mapping[str, Bounds] | None = None) -> dict[str, Bounds]:
        """Return the least and greatest values of each output; infinite where anything may be."""
        program, out = self.program, dict(out or {})
        for output in self.workload.outputs:
            kind = bounds_dtype(output).numpy
            low, high = out.setdefault(
                output.name, (np.empty(output.shape, kind), np.empty(output.shape, kind))
            )
            if self.rows is not None:
                low[...], high[...] = -np.inf, np.inf
        for rows in self._pieces():
            found = allowed(program, self.inputs, rows, self.pause)
            for output in program.outputs:
                place = _place(program, output.name, rows)
                for end, values in zip(out[output.name], found[output.name], strict=True):
                    end[place] = values
        return out

    def _pieces(self) -> Iterator[Rows]:
        """Yield the rows in parts of :data:`PIECE` points, or of one row's positions."""
        program = self.program
        carried = carried_linearly(program)
        if carried is not None and self.rows is not None and carried.position in self.rows.which:
            carried = None
        axes, sizes = axes_of_rows(program, carried), _sizes_of_piece(program, carried)
        which = {axis: np.arange(program.extent[axis]) for axis in axes}
        which |= self.rows.which if self.rows else {}
        cut = [
            [values[first : first + sizes[axis]] for first in range(0, len(values), sizes[axis])]
            for axis, values in which.items()
        ]
        for parts in product(*cut):
            yield Rows(dict(zip(which, parts, strict=True)))


@dataclass(frozen=True)
class Points:
    """The most points of its largest stage that a program's rows are judged by; and whether rows
    are those of one axis, the :func:`row_axis`.
    """

    search: int
    final: int
    one_axis: bool = False


class ProgramInputs:
    """Random problems of one program: :class:`InputError` if none would be sensitive.

    ``pause`` is called now and then in the work on them, and may raise to end it. ``most`` is what
    the host can evaluate, unless it is given.
    """

    def __init__(
        self,
        workload: Workload,
        seed: int,
        pause: Callable[[], None] = lambda: None,
        most: Points | None = None,
    ) -> None:
        self.workload, self._sensitivity, self._pause = (
            workload,
            sensitivity(workload.program),
            pause,
        )
        final = POINTS_OF_STEPS if cycles(workload.program) else FINAL_POINTS
        self._most = most or Points(SEARCH_POINTS, final)
        self._carried = None if self._most.one_axis else carried_linearly(workload.program)
        large = points(workload.program, carried=self._carried) > self._most.search
        self._kept = large and row_axis(workload.program) is None
        self._first = self._drawn(np.random.default_rng(seed), None) if self._kept else None

    def draw(self, seed: int, final: bool = False) -> ProgramDraw:
        """Return other inputs; the same ones as before in a search, where they cost too much."""
        if self._first is not None and not final:
            return self._first
        generator = np.random.default_rng(seed)
        most = self._most.final if final else self._most.search
        one_axis, carried = self._most.one_axis, self._carried
        rows = sample(self.workload.program, most, generator, one_axis, carried)
        if not final:
            rows = first_steps(self.workload.program, STEPS, rows)
        return self._drawn(generator, rows)

    def _drawn(self, generator: np.random.Generator, rows: Rows | None) -> ProgramDraw:
        """Return the most sensitive of some draws; of one, where each is."""
        program, spread = self.workload.program, self._sensitivity.spread
        if self._sensitivity.is_sure(program):
            inputs = draw(program, int(generator.integers(2**63)), spread)
            return ProgramDraw(self.workload, inputs, rows, self._pause)
        best: Mapping[str, np.ndarray] = {}
        most = -1
        for _ in range(ATTEMPTS):
            inputs = draw(program, int(generator.integers(2**63)), spread)
            if (shown := mistakes_detected(program, inputs)) > most:
                best, most = inputs, shown
            if most == mistakes_planted(program):
                break
        return ProgramDraw(self.workload, best, rows, self._pause)


def evaluation_seconds(program: Program, most: int = SEARCH_POINTS) -> float:
    """Estimate the seconds for computing the allowed bounds of a draw, at ``most`` points at
    most.
    """
    found = min(points(program, carried=carried_linearly(program)), most)
    steps = sum(program.extent[cycle.axis] * len(cycle.stages) for cycle in cycles(program))
    return POINT_SECONDS * found + STEP_SECONDS * steps


def evaluation_bytes(program: Program) -> int:
    """Memory that it takes to draw inputs and to evaluate a piece of a program, beside the inputs
    themselves."""
    drawing = 2 * 8 * max((operand.size for operand in program.operands), default=0)
    carried = carried_linearly(program)
    sizes = _sizes_of_piece(program, carried)
    every = program.stages if carried is None else stages_of(carried)
    stages = sum(_elements(program, stage, sizes) for stage in every)
    return BETWEEN + max(drawing, WIDE * stages)


def _sizes_of_piece(program: Program, carried: Recurrence | None) -> dict[str, int]:
    """Choose the sizes of all axes for rows that are evaluated at a time."""
    most = PIECE if carried is None else PIECE_OF_STATE + points_of_steps(carried)
    if cycles(program):
        most = POINTS_OF_STEPS
    return sizes_of_rows(program, most, axes_of_rows(program, carried), kept=1, carried=carried)


def _elements(program: Program, stage: Stage, sizes: Mapping[str, int]) -> int:
    """Return the elements of a stage: of one that lies along a range, those at its entries."""
    along = ranges(program).along.get(stage.name)
    own = [] if along is None else [along.row, along.entry]
    points = 1 if along is None else expected_points(program, along, sizes[along.row])
    return points * prod(sizes[axis] for axis in stage.axes if axis not in own)


def _place(program: Program, name: str, rows: Rows) -> tuple[np.ndarray, ...]:
    """Return where the rows are in an output."""
    stage = program.stage[name]
    values = rows.values(program, stage)
    return np.ix_(*(values[axis] for axis in stage.axes))
