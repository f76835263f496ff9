"""The tree of an expression: its nodes, and the one way to give them a meaning.

A node is frozen and hashable; equal trees are equal. What a tree means (numbers, intervals, text,
code) is a :mod:`meaning <spaces.language.meaning>`, which says what each kind of node becomes of
what its children became.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeVar

from tilewright.spaces.language.meaning import Meaning

T = TypeVar("T")


class Expression:
    """A node of the tree."""

    @property
    def children(self) -> tuple[Expression, ...]:
        """The nodes directly below, from left to right; an entry's indices are among them."""
        return ()

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same node above other children."""
        return self

    def walk(self) -> Iterator[Expression]:
        """Yield this node and its descendants from left to right."""
        waiting: list[Expression] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            waiting += reversed(node.children)

    def values(self) -> Iterator[Expression]:
        """Yield this node and its descendants from left to right, except inside indices (index
        tables are not values).
        """
        waiting: list[Expression] = [self]
        while waiting:
            node = waiting.pop()
            yield node
            if not isinstance(node, Read):
                waiting += reversed(node.children)

    @property
    def value_reads(self) -> tuple[Read, ...]:
        """The reads whose values count, from left to right."""
        return tuple(node for node in self.values() if isinstance(node, Read))

    def at(self, indices: Mapping[str, Expression]) -> Expression:
        """Return the tree with other expressions in the place of all axes."""
        if isinstance(self, AxisValue):
            return indices[self.name]
        return self.with_children(tuple(child.at(indices) for child in self.children))

    @cached_property
    def axes(self) -> frozenset[str]:
        """Names of the axes whose values occur, those that a reduction binds included."""
        return frozenset(node.name for node in self.walk() if isinstance(node, AxisValue))

    @cached_property
    def levels(self) -> int:
        """The depth of the tree, this node included."""
        return 1 + max((child.levels for child in self.children), default=0)

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """All reads from left to right, including those inside indices."""
        return tuple(node for node in self.walk() if isinstance(node, Read))

    def fold(
        self, meaning: Meaning[T], known: Callable[[Expression], T | None] = lambda node: None
    ) -> T:
        """Compute the tree's meaning from ``meaning``, node by node. Where ``known`` gives a
        meaning for a node, that is taken, and the nodes below are not visited.
        """
        found = known(self)
        if found is not None:
            return found
        return self.combine(meaning, [child.fold(meaning, known) for child in self.children])

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the meaning of this node, whose children have become ``parts``. Each kind has its
        own."""
        raise NotImplementedError

    def __str__(self) -> str:
        from tilewright.spaces.language.text import expression_text

        return expression_text(self)


@dataclass(frozen=True)
class Number(Expression):
    """A finite constant, never negative. A whole one among integers is an integer."""

    value: float

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the constant's meaning."""
        return meaning.number(self.value)


@dataclass(frozen=True)
class AxisValue(Expression):
    """The value of an axis, from 0 to its extent less 1."""

    name: str

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the axis' meaning."""
        return meaning.axis(self.name)


@dataclass(frozen=True)
class Read(Expression):
    """An entry of an operand or of an earlier stage, which has one index for each dimension.

    ``outside`` is the value of an entry beyond the borders; None if no index leaves them.
    """

    name: str
    indices: tuple[Expression, ...]
    outside: float | None = None

    def __hash__(self) -> int:
        found = self.__dict__.get("_hash")
        if found is None:
            found = self.__dict__["_hash"] = hash((self.name, self.indices, self.outside))
        return found

    def __reduce__(self) -> tuple[type[Read], tuple[Any, ...]]:
        return Read, (self.name, self.indices, self.outside)  # hashes differ between processes

    @property
    def children(self) -> tuple[Expression, ...]:
        """The indices."""
        return self.indices

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same array read elsewhere."""
        return Read(self.name, children, self.outside)

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the meaning of the entry at what its indices mean."""
        return meaning.read(self.name, parts, self.outside)


@dataclass(frozen=True)
class Negation(Expression):
    """Unary minus."""

    inner: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The negated expression."""
        return (self.inner,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Minus something else."""
        return Negation(*children)

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the meaning of minus what is inside."""
        return meaning.negation(*parts)


@dataclass(frozen=True)
class _Pair(Expression):
    """An operator between two expressions."""

    operator: str
    left: Expression
    right: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """Return both sides."""
        return (self.left, self.right)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same operator between others."""
        return type(self)(self.operator, *children)


class Binary(_Pair):
    """``left operator right``; the operator is one of ``+ - * / // %``."""

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the meaning of both sides, combined."""
        return meaning.binary(self.operator, *parts)


OPPOSITE = {"<": ">=", "<=": ">", ">": "<=", ">=": "<", "==": "!=", "!=": "=="}
"""The comparison that holds where another one does not, unless a side is NaN."""
MIRRORED = {"<": ">", "<=": ">=", ">": "<", ">=": "<=", "==": "==", "!=": "!="}
"""The same comparison with its sides exchanged."""


class Comparison(_Pair):
    """``left operator right``, of ``< <= > >= == !=``: the condition of a selection or program."""

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the meaning of both sides, compared."""
        return meaning.comparison(self.operator, *parts)


@dataclass(frozen=True)
class Select(Expression):
    """``then`` where the condition, a comparison, holds; ``otherwise`` elsewhere."""

    condition: Expression
    then: Expression
    otherwise: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The condition and the two values."""
        return (self.condition, self.then, self.otherwise)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return another selection, of these children."""
        return Select(*children)

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the meaning of the selection of what its parts mean."""
        return meaning.select(*parts)


@dataclass(frozen=True)
class Call(Expression):
    """A function of :data:`spaces.language.functions.FUNCTIONS`, of as many arguments as it takes.

    A cast is the call of a dtype: ``float16(x)``.
    """

    function: str
    arguments: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        """The arguments."""
        return self.arguments

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same function of others."""
        return Call(self.function, children)

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Return the meaning of the function of what its arguments mean."""
        return meaning.call(self.function, parts)


@dataclass(frozen=True)
class Reduction(Expression):
    """``reducer[axes: conditions](body)`` inside an expression, as it is read.

    :mod:`spaces.language.reading.reductions` turns every one into a stage, so a program holds none.
    """

    reducer: str
    over: tuple[str, ...]
    body: Expression
    conditions: tuple[Comparison, ...] = ()

    @property
    def children(self) -> tuple[Expression, ...]:
        """The reduced expression."""
        return (self.body,)

    def with_children(self, children: tuple[Expression, ...]) -> Expression:
        """Return the same reduction of something else."""
        (body,) = children
        return Reduction(self.reducer, self.over, body, self.conditions)

    def combine(self, meaning: Meaning[T], parts: Sequence[T]) -> T:
        """Refuse: a reduction has a meaning only as a stage."""
        raise TypeError(f"{self.reducer} over {', '.join(self.over)} is not a stage yet")
