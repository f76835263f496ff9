"""The interface of workloads: computations with everything about them fixed, ready to be tuned.

A :class:`~spaces.workloads.contraction.Contraction` is a sum of products with the operations fused
to it; a :class:`~spaces.workloads.computation.Computation` is any other program. Templates ask for
the kind that they serve; everything after them (search, cost model, measuring, database) uses this
interface only.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.array import Array

if TYPE_CHECKING:
    from tilewright.spaces.language.program import Program

INTENSE = 16
"""FLOPs for each byte that must move, from which arithmetic bounds a kernel on most machines."""

Parameter = int | float | str


class Workload(ABC):
    """One operator with fixed shapes, dtypes and layouts. Hashable; equal ones have equal keys.

    Made by :func:`spaces.operators.workload`. ``operator`` is a name for people, and
    ``parameters`` are what it was made from, as JSON values. ``accumulator`` is the dtype that sums
    are kept in. ``program`` is the computation as a program, whose arrays are the workload's
    as they lie in memory.
    """

    operator: str
    parameters: tuple[tuple[str, Parameter], ...]
    accumulator: str
    program: Program

    @property
    @abstractmethod
    def key(self) -> str:
        """The identity as canonical text, the same in every process and version of Python."""

    @abstractmethod
    def to_json(self) -> dict[str, Any]:
        """Return the description as a JSON object; read by ``workload_from_json``."""

    @property
    def asked(self) -> Program | None:
        """The program that the workload was asked for by; None if an operator's words were it."""
        return self.program

    @property
    def written(self) -> Program:
        """The program with the names, the shapes and the order that its author gave to arrays."""
        return self.asked or self.program

    @property
    @abstractmethod
    def words(self) -> Mapping[str, Parameter]:
        """The properties that workloads share which differ in extents alone."""

    @property
    @abstractmethod
    def extents(self) -> Mapping[str, int]:
        """Axis name to extent."""

    @property
    @abstractmethod
    def inputs(self) -> Sequence[Array]:
        """All arrays that a kernel reads, in the order in which it takes them."""

    @property
    @abstractmethod
    def outputs(self) -> Sequence[Array]:
        """All arrays that a kernel writes, in the order in which it takes them."""

    @property
    @abstractmethod
    def arithmetic(self) -> Sequence[str]:
        """The dtypes of what is multiplied and added: they decide how fast that can be."""

    @property
    @abstractmethod
    def functions(self) -> Collection[str]:
        """Names of the functions that are called beside arithmetic, such as ``exp``."""

    @property
    @abstractmethod
    def formula(self) -> str:
        """The computation as a formula, for people to read."""

    @property
    @abstractmethod
    def flops(self) -> int:
        """Floating-point operations, as the field counts them; 0 for a copy."""

    @property
    @abstractmethod
    def work(self) -> int:
        """The amount of work, for estimates of time and for rates: the :attr:`flops`, or one move
        at each point of the loops where there are none. Never 0.
        """

    @abstractmethod
    def make_inputs(self, seed: int) -> dict[str, np.ndarray]:
        """Return the inputs by operand name, in each operand's dtype, shape and order; the same for
        a seed."""

    def given(self, inputs: Mapping[str, np.ndarray]) -> Mapping[str, np.ndarray]:
        """Return inputs of a problem as kernels take them: elements that are codes packed."""
        return inputs

    @property
    def intense(self) -> bool:
        """Tell whether there are enough operations for each byte that their rate measures a kernel,
        and not the rate of the bytes.
        """
        return self.flops >= INTENSE * self.least_bytes

    def rate(self, latency: float) -> tuple[float, str]:
        """Compute the rate of a call of ``latency`` seconds, and its unit: GFLOP/s where work is
        :attr:`intense`, the operations of an epilogue not counted, else GB/s that must move.
        """
        if self.intense:
            return self.flops / latency / 1e9, "GFLOP/s"
        return self.least_bytes / latency / 1e9, "GB/s"

    @property
    def digest(self) -> str:
        """Short hexadecimal digest of :attr:`key`."""
        return hashlib.sha256(self.key.encode()).hexdigest()[:16]

    @property
    def coded(self) -> Sequence[Array]:
        """The inputs whose elements are packed codes, with the shapes and dtypes of these."""
        return ()

    @property
    def operands(self) -> tuple[Array, ...]:
        """All arrays in the order in which a kernel takes them: inputs, then outputs."""
        return (*self.inputs, *self.outputs)

    @property
    def least_bytes(self) -> int:
        """Bytes that must move if each input is read once and each output written once."""
        return sum(operand.bytes for operand in self.operands)

    @property
    def points(self) -> int:
        """The number of points of all loops together."""
        return prod(self.extents.values())

    def __str__(self) -> str:
        return self.key

    def __repr__(self) -> str:
        return brief(f"<Workload {self}>", 1)

    def __hash__(self) -> int:
        return hash(self.key)
