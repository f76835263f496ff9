"""Products of matrices with what is fused to them: what templates see of a workload that is one."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING

import numpy as np

from tilewright.spaces.algebra.layout import Layout, strided
from tilewright.spaces.numerics.sums import sums_of_products
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.matmul_program import matmul_program
from tilewright.spaces.workloads.stored_weights import with_stored

if TYPE_CHECKING:
    from tilewright.spaces.epilogue.expression import Epilogue
    from tilewright.spaces.language.program import Program

MATMUL = "matmul"
"""The name of the operator that spells products of matrices."""


@dataclass(frozen=True)
class Axis:
    """One loop of the operator: its name, its extent, and whether it is summed over."""

    name: str
    extent: int
    reduction: bool = False


@dataclass(frozen=True)
class Operand(Array):
    """One array of a product: ``axes`` names the loop that indexes each dimension (its index
    map), and ``shape`` gives their extents. A scalar has no axes. It is dense, or packed."""

    axes: tuple[str, ...] = field(kw_only=True)

    @property
    def layout(self) -> Layout:
        """The place of each element, in elements from the start."""
        return strided(self.shape, self.strides)

    def stride(self, axis: str) -> int:
        """Return the elements between neighbours along the loop ``axis``; 0 if it does not index
        this."""
        return self.strides[self.axes.index(axis)] if axis in self.axes else 0


@dataclass(frozen=True)
class Further:
    """An output after the first one, of the same axes in the same order, and its epilogue."""

    array: Operand
    epilogue: Epilogue | None


@dataclass(frozen=True)
class Matmul:
    """A product of matrices, or a batch of them, and an epilogue of each sum.

    ``parameters`` are the words that spell it. Templates read ``axes``, ``factors`` (the operands
    that are multiplied), ``epilogue`` (an expression over the accumulator and ``epilogue_inputs``,
    or None) and ``output``. ``accumulator`` is the dtype that sums are kept in. A program with
    several outputs has ``further`` ones (:mod:`spaces.workloads.several`).
    """

    parameters: tuple[tuple[str, int | str], ...]
    axes: tuple[Axis, ...]
    factors: tuple[Operand, ...]
    epilogue: Epilogue | None
    epilogue_inputs: tuple[Operand, ...]
    output: Operand
    accumulator: str
    further: tuple[Further, ...] = ()

    @cached_property
    def program(self) -> Program:
        """The sums, and a map of them if there is an epilogue, of arrays as they lie in memory."""
        return with_stored(self.written)

    @cached_property
    def written(self) -> Program:
        """The same of the matrices as they are before any of them is packed."""
        return matmul_program(self)

    @cached_property
    def key(self) -> str:
        """The words with what the epilogue computes for its text: the identity of a workload."""
        return self._described(self._computed)

    @property
    def text(self) -> str:
        """The words with the epilogue's text, which ``workload`` reads."""
        return self._described("" if self.epilogue is None else f'"{self.epilogue.asked}"')

    def _described(self, epilogue: str) -> str:
        words = [f"{name}={value}" for name, value in self.parameters if name != "epilogue"]
        fused = [f"epilogue={epilogue}"] if epilogue else []
        return " ".join([MATMUL, *words, *fused])

    @cached_property
    def _computed(self) -> str:
        """Identify the epilogue; empty if there is none."""
        if self.epilogue is None:
            return ""
        from tilewright.spaces.epilogue.identity import epilogue_digest

        return epilogue_digest(self.epilogue, self.output.axes)

    @property
    def properties(self) -> Mapping[str, int | str]:
        """The dtypes and layouts, what the epilogue computes, and so on."""
        named = {name: value for name, value in self.parameters if name not in self.extents}
        return named | {"epilogue": self._computed}

    @cached_property
    def extents(self) -> Mapping[str, int]:
        """Axis name to extent."""
        return {axis.name: axis.extent for axis in self.axes}

    @property
    def indexed(self) -> tuple[Operand, ...]:
        """Factors, then the epilogue's operands, as loops index them."""
        return (*self.factors, *self.epilogue_inputs)

    @cached_property
    def inputs(self) -> tuple[Array, ...]:
        """The same as they lie in memory: those that are packed as they are stored."""
        return tuple(operand.stored for operand in self.indexed)

    @property
    def outputs(self) -> tuple[Operand, ...]:
        """The output, and further ones."""
        return (self.output, *(each.array for each in self.further))

    @property
    def operands(self) -> tuple[Array, ...]:
        """All arrays in the order in which a kernel takes them: inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def least_bytes(self) -> int:
        """Bytes that must move if each input is read once and each output written once."""
        return sum(operand.bytes for operand in self.operands)

    @property
    def arithmetic(self) -> tuple[str, ...]:
        """The dtypes of the factors."""
        return tuple(operand.dtype for operand in self.factors)

    @property
    def functions(self) -> Collection[str]:
        """The functions of all epilogues."""
        epilogues = (self.epilogue, *(each.epilogue for each in self.further))
        return frozenset[str]().union(*(each.functions for each in epilogues if each is not None))

    @property
    def flops(self) -> int:
        """Floating-point operations of the sums, 2 a term. An epilogue's are left out, as the field
        does when it compares kernels.
        """
        return 2 * prod(self.extents.values())

    def make_inputs(self, seed: int, scale: float = 1.0) -> dict[str, np.ndarray]:
        """Random inputs by operand name, in each operand's dtype, shape and order.

        Uniform in [-1, 1) for floating point, in [-8, 8) for integers: no zeros to hide behind.
        The first input is multiplied by ``scale``, a power of two that its dtype has room
        for; whole numbers take those from 1 on.
        """
        generator = np.random.default_rng(seed)
        return {
            operand.name: operand.array(_random(generator, operand, scale if i == 0 else 1.0))
            for i, operand in enumerate(self.indexed)
        }

    def reference(self, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the exact result in float64 (int64 for integers), of the output's shape."""
        return self.finish(self.contract(inputs), inputs)

    def contract(
        self,
        inputs: Mapping[str, np.ndarray],
        pause: Callable[[], None] = lambda: None,
        small: bool = False,
    ) -> np.ndarray:
        """Return the sums of products alone, in float64 or int64, of the output's shape.

        ``pause`` is called now and then, and may raise to end the work. A ``small`` product is not
        worth the threads of a BLAS.
        """
        return sums_of_products(self, inputs, pause, by_blas=not small)

    def finish(self, accumulator: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the epilogue of sums that :meth:`contract` gave, within the range of the output if
        that is an integer: kernels saturate."""
        finished = self._fused(accumulator, inputs)
        if not self.output.element.is_integer:
            return finished
        return np.clip(finished, *self.output.element.limits)

    def _fused(self, accumulator: np.ndarray, inputs: Mapping[str, np.ndarray]) -> np.ndarray:
        if self.epilogue is None:
            return accumulator
        beside = self.beside_output(inputs)
        wide = {name: array.astype(np.float64) for name, array in beside.items()}
        return self.epilogue.evaluate(accumulator.astype(np.float64), wide)

    def beside_output(self, inputs: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
        """Return the epilogue's operands, each of a shape that broadcasts to the output's."""
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
        whole = generator.integers(-8, 8, size=operand.shape) * int(scale)
        return np.clip(whole, *operand.element.limits)
    if operand.element.bytes > 4:
        return (generator.random(operand.shape) * 2 - 1) * scale
    values = generator.random(operand.shape, dtype=np.float32)
    values *= 2
    values -= 1
    values *= np.float32(scale)
    return values
