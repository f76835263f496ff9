"""Fresh random inputs for every batch of candidates, without a float64 product for each.

A changed sign of a row of A or of a column of B changes the sign of that row or column of the sum.
A changed sign of the same term in both changes nothing. Both are exact in every dtype. So the sums
of products are computed once, and every draw flips random signs in inputs and sums alike. The
epilogue has no such symmetry, and is computed for each draw.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.measure.drawing.interfaces import Bounds
from tilewright.measure.drawing.product_sensitivity import is_sensitive, sensitivity
from tilewright.spaces.numerics.allowance import allowed
from tilewright.spaces.workloads.matmul import Matmul, Operand
from tilewright.spaces.workloads.workload import Workload

ATTEMPTS = 512
"""Draws of a small problem, each sensitive with a probability of 1 in 32 or more."""


@dataclass(frozen=True)
class ProductDraw:
    """Inputs by operand name, and what their sums of products are: magnitudes and signs.

    ``pause`` is called now and then while the allowed values are worked out.
    """

    workload: Workload
    matmul: Matmul
    inputs: Mapping[str, np.ndarray]
    magnitudes: np.ndarray
    signs: np.ndarray | None
    scale: float
    pause: Callable[[], None] = lambda: None
    name: str = ""

    def allowed(self, out: Mapping[str, Bounds] | None = None) -> dict[str, Bounds]:
        """Return the least and greatest values of the output, by its name; ``out`` may hold
        arrays."""
        name = self.matmul.output.name
        bounds = allowed(
            self.matmul,
            self.magnitudes,
            self.inputs,
            self.scale,
            signs=self.signs,
            out=out[name] if out else None,
            pause=self.pause,
        )
        return {name: bounds}


def product_draw(workload: Workload, seed: int) -> ProductDraw:
    """Return the inputs of a seed from ``seed`` on that are sensitive, with the signs that they
    were drawn with."""
    matmul = workload.matmul
    assert matmul
    how = sensitivity(matmul)
    for attempt in range(ATTEMPTS):
        inputs = matmul.make_inputs(seed + attempt, how.scale)
        if how.is_sure(matmul) or is_sensitive(matmul, inputs, how.scale):
            break
    return ProductDraw(workload, matmul, inputs, matmul.contract(inputs), None, how.scale)


class ProductInputs:
    """Random problems of one workload: :class:`InputError` if none would be sensitive.

    Magnitudes are drawn here, signs in every draw. ``pause`` is called now and then in the work on
    them, and may raise to end it.
    """

    def __init__(
        self, workload: Workload, seed: int, pause: Callable[[], None] = lambda: None
    ) -> None:
        assert workload.matmul
        self.workload, self._matmul, self._pause = workload, workload.matmul, pause
        self._sensitivity = sensitivity(self._matmul)
        self._seed: int | None = seed

    def draw(self, seed: int, final: bool = False) -> ProductDraw:
        """Return the same magnitudes with other signs; new ones too for a ``final`` comparison, and
        until the draw is sensitive."""
        generator = np.random.default_rng(seed)
        if self._seed is not None:
            self._draw_magnitudes(self._seed)
        elif final:
            self._draw_magnitudes(int(generator.integers(2**63)))
        draw = self._flipped(generator)
        if self._sensitivity.is_sure(self._matmul):
            return draw
        for _ in range(ATTEMPTS):
            if is_sensitive(self._matmul, draw.inputs, draw.scale):
                break
            self._draw_magnitudes(int(generator.integers(2**63)))
            draw = self._flipped(generator)
        return draw

    def _draw_magnitudes(self, seed: int) -> None:
        self._seed, self._inputs, self._sums = None, {}, np.zeros(0)  # the old ones' memory first
        self._inputs = self._matmul.make_inputs(seed, self._sensitivity.scale)
        self._sums = self._matmul.contract(self._inputs, self._pause)

    def _flipped(self, generator: np.random.Generator) -> ProductDraw:
        matmul = self._matmul
        flips = {axis.name: generator.random(axis.extent) < 0.5 for axis in matmul.axes}
        inputs = dict(self._inputs)
        for operand in matmul.factors:
            own = {axis: flips[axis] for axis in _axes_flipped_in(operand, matmul)}
            flipped = _flip(operand.plain(inputs[operand.name]), operand, own)
            inputs[operand.name] = operand.array(flipped) if operand.packed else flipped
        for operand in matmul.epilogue_inputs:
            inputs[operand.name] = _flip(inputs[operand.name], operand, flips)
        signs = np.where(_mask(matmul.output, flips), np.int8(-1), np.int8(1))
        scale = self._sensitivity.scale
        return ProductDraw(self.workload, matmul, inputs, self._sums, signs, scale, self._pause)


def _axes_flipped_in(operand: Operand, matmul: Matmul) -> list[str]:
    """Return an output's axis flips in the first operand that has it, a reduction's in the first
    two."""
    chosen = []
    for axis in matmul.axes:
        owners = [o.name for o in matmul.factors if axis.name in o.axes]
        flipped = owners[: 2 * (len(owners) > 1)] if axis.reduction else owners[:1]
        if operand.name in flipped:
            chosen.append(axis.name)
    return chosen


def _mask(operand: Operand, flips: Mapping[str, np.ndarray]) -> np.ndarray:
    """Boolean array, broadcastable to the operand's shape: where its sign changes."""
    mask = np.zeros((1,) * len(operand.shape), dtype=bool)
    for dimension, axis in enumerate(operand.axes):
        if axis in flips:
            shape = [1] * len(operand.shape)
            shape[dimension] = -1
            mask = mask ^ flips[axis].reshape(shape)
    return mask


def _flip(values: np.ndarray, operand: Operand, flips: Mapping[str, np.ndarray]) -> np.ndarray:
    """Return ``values`` with signs changed; of floating point by their sign bit, which is the
    first."""
    mask = _mask(operand, flips)
    if operand.element.is_integer:
        return np.where(mask, -values, values)
    word = np.dtype(f"u{operand.element.bytes}")
    bits = mask.astype(word) << word.type(8 * operand.element.bytes - 1)
    return np.asarray((values.view(word) ^ bits).view(values.dtype))
