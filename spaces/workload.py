"""What is to be computed: one operator with everything about it fixed."""

from __future__ import annotations

import hashlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from spaces.algebra.layout import Layout, strided
from spaces.dtypes import DType, dtype
from spaces.numerics.sums import sums_of_products

if TYPE_CHECKING:
    from spaces.epilogue.expression import Expression


@dataclass(frozen=True)
class Axis:
    """One loop of the operator: its name, its extent, and whether it is summed over."""

    name: str
    extent: int
    reduction: bool = False


@dataclass(frozen=True)
class Operand:
    """One array of the operator.

    ``axes`` names the loop that indexes each dimension (its index map); ``shape`` gives their
    extents; ``order`` lists the dimensions from the slowest in memory to the fastest, so
    ``(0, 1)`` is row-major and ``(1, 0)`` column-major. A scalar has no axes.
    """

    name: str
    dtype: str
    axes: tuple[str, ...]
    shape: tuple[int, ...]
    order: tuple[int, ...]

    @property
    def element(self) -> DType:
        """The element type."""
        return dtype(self.dtype)

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """Bytes of the whole array; it is dense."""
        return self.size * self.element.bytes

    @cached_property
    def strides(self) -> tuple[int, ...]:
        """Distance in elements between neighbours along each dimension."""
        strides, step = [0] * len(self.shape), 1
        for dimension in reversed(self.order):
            strides[dimension] = step
            step *= self.shape[dimension]
        return tuple(strides)

    @property
    def layout(self) -> Layout:
        """Where each element lives, in elements from the start."""
        return strided(self.shape, self.strides)

    def stride(self, axis: str) -> int:
        """Elements between neighbours along the loop ``axis``; 0 if it does not index this."""
        return self.strides[self.axes.index(axis)] if axis in self.axes else 0

    def array(self, values: np.ndarray) -> np.ndarray:
        """``values`` (of :attr:`shape`) converted to this operand's dtype and memory order."""
        ordered = self.element.cast(values.transpose(self.order))
        return ordered.transpose(np.argsort(self.order))


@dataclass(frozen=True)
class Workload:
    """One operator with fixed shapes, dtypes, layouts and a fused epilogue. Hashable.

    Made by :func:`spaces.operators.workload`; ``parameters`` are the ones it was made from, as
    JSON values, and identify it. Templates read ``axes``, ``inputs`` (the contraction's own
    operands), ``epilogue`` (an expression over the accumulator and ``epilogue_inputs``, or None)
    and ``output``; they never ask which operator it is.
    """

    operator: str
    parameters: tuple[tuple[str, int | str], ...]
    axes: tuple[Axis, ...]
    inputs: tuple[Operand, ...]
    epilogue: Expression | None
    epilogue_inputs: tuple[Operand, ...]
    output: Operand
    accumulator: str

    @cached_property
    def key(self) -> str:
        """Canonical text, the same in every process and version of Python."""
        words = [f"{name}={value}" for name, value in self.parameters if name != "epilogue"]
        if self.epilogue is not None:
            words.append(f'epilogue="{self.epilogue}"')
        return " ".join([self.operator, *words])

    @property
    def digest(self) -> str:
        """Short hexadecimal digest of :attr:`key`: names files and functions."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]

    def to_json(self) -> dict[str, Any]:
        """``{"operator": ..., "parameters": {...}}``; read by ``workload_from_json``."""
        return {"operator": self.operator, "parameters": dict(self.parameters)}

    def __str__(self) -> str:
        return self.key

    def __hash__(self) -> int:
        return hash(self.key)

    @cached_property
    def extents(self) -> Mapping[str, int]:
        """Axis name to extent."""
        return {axis.name: axis.extent for axis in self.axes}

    @property
    def operands(self) -> tuple[Operand, ...]:
        """All arrays in the order a kernel takes them: inputs, epilogue inputs, output."""
        return (*self.inputs, *self.epilogue_inputs, self.output)

    @property
    def flops(self) -> int:
        """Floating-point operations at all points of the loops: at each a multiply for every input
        but the first, and an add where axes are summed over. So 2 a term of a product of matrices,
        and none for a copy.

        An epilogue's operations are left out, as the field does when it compares kernels.
        """
        adds = any(axis.reduction for axis in self.axes)
        return self._points * (len(self.inputs) - 1 + adds)

    @property
    def work(self) -> int:
        """What there is to do, for estimates of time and for what is said of each unit of it: the
        :attr:`flops`, or a move at each point of the loops where there are none. Never 0."""
        return max(self.flops, self._points)

    @property
    def _points(self) -> int:
        return prod(axis.extent for axis in self.axes)

    @property
    def least_bytes(self) -> int:
        """Bytes that must move if each input is read once and the output written once."""
        return sum(operand.bytes for operand in self.operands)

    def make_inputs(self, seed: int, scale: float = 1.0) -> dict[str, np.ndarray]:
        """Deterministic inputs by operand name, in each operand's dtype, shape and order.

        Uniform in [-1, 1) for floating point, in [-8, 8) for integers: no zeros to hide behind.
        The first input is multiplied by ``scale``, a power of two that its dtype has room
        for; whole numbers take those from 1 on.
        """
        generator = np.random.default_rng(seed)
        return {
            operand.name: operand.array(_random(generator, operand, scale if i == 0 else 1.0))
            for i, operand in enumerate((*self.inputs, *self.epilogue_inputs))
        }

    def reference(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The exact result in float64 (int64 for integers), of the output's shape."""
        return self.finish(self.contract(inputs), inputs)

    def contract(
        self,
        inputs: Mapping[str, np.ndarray],
        pause: Callable[[], None] = lambda: None,
        small: bool = False,
    ) -> np.ndarray:
        """The sums of products alone, in float64 or int64, of the output's shape.

        ``pause`` is called now and then, and may raise to end the work. A ``small`` product is not
        worth the threads of a BLAS.
        """
        return sums_of_products(self, inputs, pause, by_blas=not small)

    def finish(self, accumulator: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """The epilogue of sums that :meth:`contract` gave, within the range of the output if that
        is an integer: kernels saturate."""
        finished = self._fused(accumulator, inputs)
        if not self.output.element.is_integer:
            return finished
        range_ = np.iinfo(self.output.element.numpy)
        return np.clip(finished, range_.min, range_.max)

    def _fused(self, accumulator: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        if self.epilogue is None:
            return accumulator
        beside = self.beside_output(inputs)
        wide = {name: array.astype(np.float64) for name, array in beside.items()}
        return self.epilogue.evaluate(accumulator.astype(np.float64), wide)

    def beside_output(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """The epilogue's operands, each of a shape that broadcasts to the output's."""
        letters = {axis: i for i, axis in enumerate(self.output.axes)}
        named = {}
        for operand in self.epilogue_inputs:
            array = np.asarray(inputs[operand.name])
            shape = [1] * len(letters)
            for axis, extent in zip(operand.axes, operand.shape, strict=True):
                shape[letters[axis]] = extent
            source = sorted(range(array.ndim), key=lambda d: letters[operand.axes[d]])
            named[operand.name] = array.transpose(source).reshape(shape)
        return named


def _random(generator: np.random.Generator, operand: Operand, scale: float) -> np.ndarray:
    if operand.element.is_integer:
        return generator.integers(-8, 8, size=operand.shape) * int(scale)
    if operand.element.bytes > 4:
        return (generator.random(operand.shape) * 2 - 1) * scale
    values = generator.random(operand.shape, dtype=np.float32)
    values *= 2
    values -= 1
    values *= np.float32(scale)
    return values
