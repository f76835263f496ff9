"""Translate a program's expressions for a judging kernel: values with their intervals, as variables
of CUDA C++ (:mod:`spaces.derivation.rounding.approximate`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from math import prod
from operator import and_
from typing import Any

from tilewright.measure.cuda.trusted.statements import (
    CONDITION,
    WHOLE,
    Statements,
    Variable,
    as_double,
    text,
)
from tilewright.spaces.derivation.rounding.approximate import Approximate, Approximation
from tilewright.spaces.numerics.interval import Interval, Rules
from tilewright.spaces.workloads.array import Array

WIDE = 25
"""Bytes of an element between stages: its value and both ends of its interval, and a flag."""


@dataclass(frozen=True)
class OperandArray:
    """An operand in memory: ``pointer`` is C text of its first element's address."""

    array: Array
    pointer: str

    @property
    def shape(self) -> tuple[int, ...]:
        """The extent of each dimension."""
        return self.array.shape

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance of neighbours along each dimension."""
        return self.array.strides

    def load(self, code: Statements, rules: Rules, at: str) -> Approximate:
        """Return the element at a position."""
        element = f"tw::load_global({self.pointer} + {at})"
        if self.array.element.is_integer:
            return Approximate(code.variable(f"(i64){element}", WHOLE))
        value = code.variable(as_double(element, self.array.dtype))
        return Approximate(value, rules.given(value, self.array.element))


@dataclass(frozen=True)
class StageArray:
    """A stage in the workspace, dense: whole numbers; or values, lows and highs, and then a byte
    each that says whether anything goes. ``offset`` is where, in bytes; ``row`` the dimension, if
    there is one, along which it has the rows of a piece alone."""

    shape: tuple[int, ...]
    whole: bool
    offset: int
    row: int | None = None

    @property
    def size(self) -> int:
        """Number of elements."""
        return prod(self.shape)

    @property
    def bytes(self) -> int:
        """The size of all kept values in bytes."""
        return self.size * (8 if self.whole else WIDE)

    @property
    def strides(self) -> tuple[int, ...]:
        """The distance of neighbours along each dimension."""
        return Array("", "float64", self.shape, tuple(range(len(self.shape)))).strides

    def load(self, code: Statements, rules: Rules, at: str) -> Approximate:
        """Return the element at a position."""
        if self.whole:
            return Approximate(code.variable(self._loaded(WHOLE, 0, at), WHOLE))
        value, low, high = (code.variable(self._loaded("double", n, at)) for n in range(3))
        free = code.variable(f"{self._loaded('u8', 3, at)} != 0", CONDITION)
        return Approximate(value, Interval(low, high, free))

    def store(self, found: Approximate, at: str) -> list[str]:
        """Return the statements that keep an element."""
        if found.interval is None:
            return [f"tw::store_global({self._plane(WHOLE, 0)} + {at}, {text(found.value)});"]
        b = found.interval
        ends = enumerate((found.value, b.low, b.high))
        lines = [f"tw::store_global({self._plane('double', n)} + {at}, {end});" for n, end in ends]
        return [*lines, f"tw::store_global({self._plane('u8', 3)} + {at}, (u8){text(b.free)});"]

    def _loaded(self, kind: str, plane: int, at: str) -> str:
        return f"tw::load_global({self._plane(kind, plane)} + {at})"

    def _plane(self, kind: str, number: int) -> str:
        return f"({kind} *)(workspace + {self.offset + 8 * number * self.size})"


@dataclass(frozen=True)
class CodeMeaning(Approximation):
    """The meaning of expressions at one point. ``axes`` are variables, and ``extents`` their ends;
    ``row``, if there is one, is the axis of the piece's rows, and the number of the row within
    them.
    """

    code: Statements
    arrays: Mapping[str, OperandArray | StageArray]
    axes: Mapping[str, Variable]
    extents: Mapping[str, int]
    row: tuple[str, Variable] | None = None

    def axis(self, name: str) -> Approximate:
        """Return the loop's."""
        return Approximate(self.axes[name])

    def entry(self, name: str, indices: Sequence[Any]) -> tuple[Approximate, Any]:
        """Load an entry; an index that is an axis needs no check."""
        array, places, within = self.arrays[name], [], []
        known = {variable.name: self.extents[axis] for axis, variable in self.axes.items()}
        for dimension, (index, extent) in enumerate(zip(indices, array.shape, strict=True)):
            if isinstance(array, StageArray) and dimension == array.row and self.row:
                index = self.row[1]
            elif known.get(text(index), extent + 1) > extent:
                whole = self.code.variable(f"(i64)({text(index)})", WHOLE)
                index = self.code.variable(f"ex_nearest({whole}, {extent})", WHOLE)
                within.append(self.code.operation("==", whole, index))
            places.append(index)
        terms = [f"{text(i)} * {s}" for i, s in zip(places, array.strides, strict=True)]
        at = self.code.variable(" + ".join(terms) or "0", WHOLE)
        found = array.load(self.code, self.rules, at.name)
        return found, reduce(and_, within) if within else True
