"""Problems in device memory: inputs, what is allowed of the outputs, and whether inputs stay.

A product is drawn, and evaluated in float64, where its data is (:mod:`measure.cuda.oracle`). Any
other workload is drawn and evaluated on the host, once for all batches of a search in one process,
for that takes up to half a second (:mod:`measure.drawing.programs`), and uploaded.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, replace

import numpy as np

from measure.cuda import oracle
from measure.cuda.buffers import Buffers
from measure.cuda.device import Prepared
from measure.drawing.draw import Bounds, Draw, are_for, fresh_inputs
from measure.drawing.product_telling import is_telling, telling
from measure.drawing.products import ATTEMPTS
from spaces.workloads.array import Array
from spaces.workloads.contraction import Contraction
from spaces.workloads.product import product_of
from spaces.workloads.workload import Workload


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
        self._pause = pause
        self._draw: Draw | None = None
        self._allowed: Mapping[str, Bounds] = {}

    def of(
        self, workload: Workload, seed: int, final: bool
    ) -> tuple[Mapping[str, np.ndarray], Mapping[str, Bounds]]:
        """Inputs and what is allowed, each by name."""
        if final or self._draw is None or not are_for(self._draw, workload):
            self._draw, self._allowed = None, {}  # the old one's memory first
            draw = fresh_inputs(workload, seed, self._pause).draw(seed, final)
            if final:
                return draw.inputs, draw.allowed()
            self._draw, self._allowed = draw, draw.allowed()
        return self._draw.inputs, self._allowed


def set_up(
    buffers: Buffers, workload: Workload, seed: int, final: bool, host: HostDraws
) -> list[Check]:
    """Put a problem of ``workload`` into new ``buffers``: its operands, and what is allowed of each
    output. Calls that say whether the inputs are still what they were."""
    buffers.add(*workload.operands, *map(oracle.allowed_operand, workload.outputs))
    if isinstance(workload, Contraction) and not isinstance(product_of(workload), str):
        return list(_drawn_there(buffers, workload, seed))
    return list(_uploaded(buffers, workload, *host.of(workload, seed, final)))


def _uploaded(
    buffers: Buffers,
    workload: Workload,
    inputs: Mapping[str, np.ndarray],
    allowed: Mapping[str, Bounds],
) -> Iterator[Check]:
    for output in workload.outputs:
        buffers.write(oracle.allowed_operand(output), np.stack(allowed[output.name]))
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
    buffers.bound(oracle.expect(workload, how.scale))()
    for operand in workload.inputs:
        yield Check(operand, buffers.bound(oracle.changed(operand, blocks, scales[operand.name])))
