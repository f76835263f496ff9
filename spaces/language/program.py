"""A program: what an operator computes, as stages over axes of fixed extents.

Each stage is one array, ``name[axes] = reducer[over](body)``, or a map without a reducer. A program
is plain frozen data. :func:`spaces.language.program` makes one from text and has checked it.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.language.tree import Call, Comparison, Expression
from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class Entries:
    """Values of an operand that are indices: whole numbers from 0 to ``below`` less 1.

    ``sorted`` ones never fall from one entry to the next. Drawn with a ``skew`` (0: none), an index
    has a weight w with the density w ** -skew, as the degrees of most graphs have it. A ``table``
    that a user has given is not drawn (:mod:`spaces.language.given`).
    """

    below: int
    sorted: bool = False
    skew: float = 0.0
    table: str = ""

    def __str__(self) -> str:
        kind = "sorted" if self.sorted else "index"
        skew = f", skew={self.skew:g}" if self.skew else ""
        return f"{kind} < {self.below}{skew}" + (f", table={self.table}" if self.table else "")


@dataclass(frozen=True)
class Operand(Array):
    """An array that the program reads; ``drawn`` says how values for it are drawn.

    None stands for values of any size: uniform in [-1, 1), or whole numbers from -8 to 7; and for
    all values that packed codes may have. A constant has its ``elements``, rows first: kernels have
    no such operand (:mod:`spaces.derivation.constants`).
    """

    drawn: Entries | None = None
    elements: tuple[float, ...] | None = None


@dataclass(frozen=True)
class Output(Array):
    """An array that the program writes: the stage of the same name, in a dtype and an order."""


@dataclass(frozen=True)
class Stage:
    """``name[axes] = reducer[over](body)``; a map has no reducer, and nothing to reduce over."""

    name: str
    axes: tuple[str, ...]
    reducer: str | None
    over: tuple[str, ...]
    body: Expression

    def __str__(self) -> str:
        from tilewright.spaces.language.text import stage_text

        return stage_text(self)


@dataclass(frozen=True)
class Program:
    """Stages in an order in which each reads operands and earlier stages only.

    ``extents`` pairs each axis with its extent. A condition bounds every reduction over an axis
    that it names: elements at which it does not hold are not reduced. Sums are kept in the dtype
    ``accumulator`` where it is given; the identity does not depend on it.
    """

    extents: tuple[tuple[str, int], ...]
    operands: tuple[Operand, ...]
    stages: tuple[Stage, ...]
    conditions: tuple[Comparison, ...]
    outputs: tuple[Output, ...]
    accumulator: str = ""

    @cached_property
    def extent(self) -> Mapping[str, int]:
        """Axis name to extent."""
        return dict(self.extents)

    @cached_property
    def operand(self) -> Mapping[str, Operand]:
        """Operands by name."""
        return {operand.name: operand for operand in self.operands}

    @cached_property
    def constants(self) -> tuple[Operand, ...]:
        """The operands that are constants."""
        return tuple(o for o in self.operands if o.elements is not None)

    @cached_property
    def stage(self) -> Mapping[str, Stage]:
        """Stages by name."""
        return {stage.name: stage for stage in self.stages}

    @cached_property
    def computed_in(self) -> str:
        """The dtype that kernels compute in: float64 if any array has it, else float32."""
        arrays = (*self.operands, *self.outputs)
        return "float64" if any(array.dtype == "float64" for array in arrays) else "float32"

    @cached_property
    def sums_in(self) -> str:
        """The dtype that sums are kept in."""
        return self.accumulator or self.computed_in

    def shape(self, axes: tuple[str, ...]) -> tuple[int, ...]:
        """Return the extents of some axes."""
        return tuple(self.extent[axis] for axis in axes)

    def bounding(self, stage: Stage) -> tuple[Comparison, ...]:
        """Return the conditions that bound a stage: each names an axis that it reduces over."""
        return tuple(c for c in self.conditions if not c.axes.isdisjoint(stage.over))

    @cached_property
    def functions(self) -> frozenset[str]:
        """Names of the functions that stages and conditions call, casts included."""
        expressions = (*(stage.body for stage in self.stages), *self.conditions)
        nodes = (node for expression in expressions for node in expression.walk())
        return frozenset(node.function for node in nodes if isinstance(node, Call))

    @cached_property
    def digest(self) -> str:
        """The identity: equal for programs that differ in names and writing alone."""
        from tilewright.spaces.language.identity.canonical import description

        return hashlib.sha256(description(self).encode()).hexdigest()[:16]

    @cached_property
    def text(self) -> str:
        """The whole program as the language writes it."""
        from tilewright.spaces.language.text import program_text

        return program_text(self)

    def __repr__(self) -> str:
        return brief(f"<Program\n{self.text}>")

    def __str__(self) -> str:
        return self.text
