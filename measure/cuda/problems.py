"""Problems in device memory: inputs, what is allowed of the outputs, and whether inputs stay.

What is allowed is worked out in float64 where the data is (:mod:`measure.cuda.trusted`). A product
is drawn there, too. Any other program is drawn on the host, once for all batches of a search in
one process, and uploaded; some of its rows are evaluated on both.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from measure.cuda.buffers import Buffers
from measure.cuda.device import Prepared
from measure.cuda.trusted import oracle
from measure.cuda.trusted.evaluating import evaluate, hold_to_the_host
from measure.cuda.trusted.products import expect
from measure.cuda.trusted.programs import fits
from measure.drawing.draw import are_for, fresh_inputs
from measure.drawing.interfaces import Bounds, Draw
from measure.drawing.product_telling import is_telling, telling
from measure.drawing.products import ATTEMPTS
from measure.drawing.programs import Points, ProgramDraw, ProgramInputs
from spaces.workloads.array import Array
from spaces.workloads.computation import Computation
from spaces.workloads.contraction import Contraction
from spaces.workloads.product import product_of
from spaces.workloads.workload import Workload

POINTS = Points(search=1 << 26, final=1 << 34, one_axis=True)
"""Points of a program that a device evaluates: some milliseconds, and a second."""


@dataclass(frozen=True)
class Check:
    """A call that reports elements of an input which are not as they were."""

    operand: Array
    call: Prepared


class HostDraws:
    """The last problem that was drawn on the host; a final comparison gets one of its own.

    ``pause`` is called now and then in the work on one.
    """

    def __init__(self, pause: Callable[[], None] = lambda: None) -> None:
        self.pause = pause
        self._draw: Draw | None = None
        self._allowed: Mapping[str, Bounds] = {}

    def of(self, workload: Workload, seed: int, final: bool) -> tuple[Draw, bool]:
        """The problem, and whether it is new."""
        if not final and self._draw is not None and are_for(self._draw, workload):
            return self._draw, False
        self._draw, self._allowed = None, {}  # the old one's memory first
        draw = _fresh(workload, seed, self.pause, final)
        self._draw = None if final else draw
        return draw, True

    def allowed(self, draw: Draw) -> Mapping[str, Bounds]:
        """What is allowed of a problem by the host; that of the last one is kept."""
        if draw is not self._draw:
            return draw.allowed()
        self._allowed = self._allowed or draw.allowed()
        return self._allowed


def _fresh(workload: Workload, seed: int, pause: Callable[[], None], final: bool) -> Draw:
    if isinstance(workload, Computation) and fits(workload.program):
        return ProgramInputs(workload, seed, pause, POINTS).draw(seed, final)
    return fresh_inputs(workload, seed, pause).draw(seed, final)


def set_up(
    buffers: Buffers, workload: Workload, seed: int, final: bool, host: HostDraws
) -> list[Check]:
    """Put a problem of ``workload`` into new ``buffers``: its operands, and what is allowed of each
    output. Calls that say whether the inputs are still what they were."""
    buffers.add(*workload.operands, *map(oracle.allowed_operand, workload.outputs))
    if isinstance(workload, Contraction) and not isinstance(product_of(workload), str):
        return list(_drawn_there(buffers, workload, seed))
    draw, is_new = host.of(workload, seed, final)
    checks = list(_uploaded(buffers, workload, draw.inputs))
    if isinstance(draw, ProgramDraw) and fits(draw.workload.program):
        evaluate(buffers, draw, host.pause)
        if is_new:
            hold_to_the_host(buffers, draw)
        return checks
    for name, bounds in host.allowed(draw).items():
        output = next(o for o in workload.outputs if o.name == name)
        buffers.write(oracle.allowed_operand(output), np.stack(bounds))
    return checks


def _uploaded(
    buffers: Buffers, workload: Workload, inputs: Mapping[str, np.ndarray]
) -> Iterator[Check]:
    for operand in workload.inputs:
        copy = replace(operand, name=oracle.copy_name(operand))
        buffers.add(copy)
        for array in (operand, copy):
            buffers.write(array, inputs[operand.name])
        yield Check(operand, buffers.bound(oracle.differing(operand, buffers.blocks)))


def _drawn_there(buffers: Buffers, workload: Contraction, seed: int) -> Iterator[Check]:
    """Inputs of a seed from ``seed`` on that makes them telling."""
    how, blocks = telling(workload), buffers.blocks
    scales = {operand.name: 1.0 for operand in workload.inputs}
    scales[workload.inputs[0].name] = how.scale
    buffers.add(oracle.SEED)
    fills = [buffers.bound(oracle.fill(o, blocks, scales[o.name])) for o in workload.inputs]
    for attempt in range(ATTEMPTS):
        own = (seed + attempt) % 2**31
        buffers.write(oracle.SEED, np.array(own, np.int32))
        for fill in fills:
            fill()
        if how.is_sure(workload):
            break
        inputs = {operand.name: buffers.read(operand) for operand in workload.inputs}
        if is_telling(workload, inputs, how.scale):
            break
    buffers.bound(expect(workload, how.scale))()
    for operand in workload.inputs:
        yield Check(operand, buffers.bound(oracle.changed(operand, blocks, scales[operand.name])))
