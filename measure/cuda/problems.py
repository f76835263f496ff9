"""Problems in device memory: inputs, the allowed bounds of outputs, and a check of changed inputs.

Bounds are computed in float64 on the device (:mod:`measure.cuda.trusted`). Inputs of a product are
drawn there, too. Inputs of any other program are drawn on the host, once for all batches of a
search in one process, and uploaded; some of its rows are evaluated on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TypeGuard

import numpy as np

from tilewright.measure.cuda.buffers import Buffers
from tilewright.measure.cuda.device import Prepared
from tilewright.measure.cuda.trusted import oracle
from tilewright.measure.cuda.trusted.evaluating import evaluate, hold_to_the_host
from tilewright.measure.cuda.trusted.products import expect
from tilewright.measure.cuda.trusted.programs import fits, read_operand
from tilewright.measure.drawing.draw import are_for, fresh_inputs
from tilewright.measure.drawing.further_draws import further_draws, has_further_draws
from tilewright.measure.drawing.interfaces import Bounds, Draw
from tilewright.measure.drawing.product_sensitivity import is_sensitive, sensitivity
from tilewright.measure.drawing.products import ATTEMPTS
from tilewright.measure.drawing.programs import Points, ProgramDraw, ProgramInputs
from tilewright.measure.drawing.tables import SHARE
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.product import product_of
from tilewright.spaces.workloads.workload import Workload

POINTS = Points(search=1 << 26, final=1 << 34, one_axis=True)
"""Points of a program that a device evaluates: some milliseconds, and a second."""


@dataclass(frozen=True)
class Check:
    """A call that reports elements of an input which are not as they were."""

    operand: Array
    call: Prepared


@dataclass
class Problem:
    """A problem in device memory. ``draw`` is None if the device made it, which ``again`` repeats.
    The calls of ``unchanged`` tell whether the inputs are as they were.
    """

    buffers: Buffers
    workload: Workload
    host: HostDraws
    draw: Draw | None
    unchanged: Sequence[Check]
    again: Callable[[], None] = lambda: None

    def others(self, numerics: Numerics) -> Iterator[str]:
        """Yield the names of other problems, on which kernels of ``numerics`` are right. Each takes
        the place of the first one; that is back after the last. Inputs that the device has drawn
        are not held to copies meanwhile: kernels that write to their inputs failed before.
        """
        if not has_further_draws(self.workload):
            return
        unchanged = self.unchanged
        before = first = self.draw or self._read()
        for number, draw in enumerate(_others(first, numerics), 1):
            self._turn_to(draw, before)
            before = draw
            yield draw.name or f"other inputs {number}"
        if self.draw is None:
            self.again()
            self.unchanged = unchanged
        else:
            self._turn_to(first, before)

    def _read(self) -> Draw:
        """Read what the device has drawn."""
        self.unchanged = ()
        inputs = {operand.name: self.buffers.read(operand) for operand in self.workload.inputs}
        return ProgramDraw(self.workload, inputs, pause=self.host.pause)

    def _turn_to(self, draw: Draw, before: Draw) -> None:
        """Put a problem in the place of the one ``before``, which differs in some arrays."""
        given, old = draw.inputs, before.inputs
        changed = [o for o in self.workload.inputs if given[o.name] is not old[o.name]]
        _upload(self.buffers, draw, changed, copied=self.draw is not None)
        _allow(self.buffers, draw, self.host)


class HostDraws:
    """The last problem that was drawn on the host; a final comparison gets one of its own.

    ``pause`` is called now and then in the work on one.
    """

    def __init__(self, pause: Callable[[], None] = lambda: None) -> None:
        self.pause = pause
        self._draw: Draw | None = None
        self._allowed: Mapping[str, Bounds] = {}

    def of(self, workload: Workload, seed: int, final: bool) -> tuple[Draw, bool]:
        """Return the problem, and whether it is new."""
        if not final and self._draw is not None and are_for(self._draw, workload):
            return self._draw, False
        self._draw, self._allowed = None, {}  # the old one's memory first
        draw = _fresh(workload, seed, self.pause, final)
        self._draw = None if final else draw
        return draw, True

    def allowed(self, draw: Draw) -> Mapping[str, Bounds]:
        """Compute the allowed bounds of a problem on the host; the last problem's bounds are
        kept.
        """
        if draw is not self._draw:
            return draw.allowed()
        self._allowed = self._allowed or draw.allowed()
        return self._allowed


def _fresh(workload: Workload, seed: int, pause: Callable[[], None], final: bool) -> Draw:
    if not workload.matmul and fits(workload.program):
        return ProgramInputs(workload, seed, pause, POINTS).draw(seed, final)
    return fresh_inputs(workload, seed, pause).draw(seed, final)


def set_up(
    buffers: Buffers, workload: Workload, seed: int, final: bool, host: HostDraws
) -> Problem:
    """Put a problem of ``workload`` into new ``buffers``: its operands, and the allowed bounds of
    each output.
    """
    buffers.add(*workload.operands, *map(oracle.allowed_operand, workload.outputs))
    if not isinstance(product_of(workload), str):
        return _drawn_there(buffers, workload, seed, host)
    draw, is_new = host.of(workload, seed, final)
    buffers.add(*map(_copy, workload.inputs), *map(read_operand, workload.coded))
    _upload(buffers, draw, workload.inputs)
    _allow(buffers, draw, host)
    if is_new and _is_evaluated_there(draw):
        hold_to_the_host(buffers, draw)
    calls = [buffers.bound(oracle.differing(o, buffers.blocks)) for o in workload.inputs]
    checks = [Check(o, call) for o, call in zip(workload.inputs, calls, strict=True)]
    return Problem(buffers, workload, host, draw, checks)


def _others(draw: Draw, numerics: Numerics) -> Iterator[Draw]:
    """Return the same problem with other inputs, see :mod:`measure.drawing.further_draws`."""
    if _is_evaluated_there(draw):
        return further_draws(draw, POINTS.final // SHARE, POINTS.one_axis, numerics)
    return further_draws(draw, numerics=numerics)


def _is_evaluated_there(draw: Draw) -> TypeGuard[ProgramDraw]:
    return isinstance(draw, ProgramDraw) and fits(draw.program)


def _copy(operand: Array) -> Array:
    return replace(operand, name=oracle.copy_name(operand))


def _upload(buffers: Buffers, draw: Draw, operands: Sequence[Array], copied: bool = True) -> None:
    """Write inputs, as kernels take them, and the values of packed codes for judging kernels."""
    values = {operand.name: draw.inputs[operand.name] for operand in operands}
    given = draw.workload.given(values)
    for operand in operands:
        for array in (operand, _copy(operand)) if copied else (operand,):
            buffers.write(array, given[operand.name])
    for operand in draw.workload.coded:
        if operand.name in values:
            buffers.write(read_operand(operand), operand.plain(values[operand.name]))


def _allow(buffers: Buffers, draw: Draw, host: HostDraws) -> None:
    if _is_evaluated_there(draw):
        evaluate(buffers, draw, host.pause)
        return
    for name, bounds in host.allowed(draw).items():
        output = next(o for o in draw.workload.outputs if o.name == name)
        buffers.write(oracle.allowed_operand(output), np.stack(bounds))


def _drawn_there(buffers: Buffers, workload: Workload, seed: int, host: HostDraws) -> Problem:
    """Return the inputs of a seed from ``seed`` on that makes them sensitive."""
    matmul, blocks = workload.matmul, buffers.blocks
    assert matmul
    how = sensitivity(matmul)
    scales = {operand.name: 1.0 for operand in workload.inputs}
    scales[workload.inputs[0].name] = how.scale
    buffers.add(oracle.SEED)
    fills = [buffers.bound(oracle.fill(o, blocks, scales[o.name])) for o in workload.inputs]
    for attempt in range(ATTEMPTS):
        own = (seed + attempt) % 2**31
        buffers.write(oracle.SEED, np.array(own, np.int32))
        for fill in fills:
            fill()
        if how.is_sure(matmul):
            break
        inputs = {operand.name: buffers.read(operand) for operand in workload.inputs}
        if is_sensitive(matmul, inputs, how.scale):
            break
    calls = [*fills, buffers.bound(expect(workload, how.scale))]
    calls[-1]()
    checks = [
        Check(operand, buffers.bound(oracle.changed(operand, blocks, scales[operand.name])))
        for operand in workload.inputs
    ]

    def again() -> None:
        for call in calls:
            call()

    return Problem(buffers, workload, host, None, checks, again)
