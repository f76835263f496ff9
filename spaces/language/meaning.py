"""The interface of an expression's meaning: numbers, intervals, text or code, node by node."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Generic, Protocol, TypeVar

T = TypeVar("T")


class Meaning(Protocol[T]):
    """The meaning of each kind of node: arrays, intervals, text, or anything that combines."""

    def number(self, value: float) -> T:
        """Give the meaning of a constant, never negative."""
        ...

    def axis(self, name: str) -> T:
        """Give the meaning of an axis as a value: 0, 1, 2, ..."""
        ...

    def read(self, name: str, indices: Sequence[T], outside: float | None) -> T:
        """Give the meaning of an entry of an operand or stage; ``outside`` is the value beyond its
        borders.
        """
        ...

    def negation(self, inner: T) -> T:
        """Give the meaning of unary minus."""
        ...

    def binary(self, operator: str, left: T, right: T) -> T:
        """Give the meaning of one of ``+ - * / // %``."""
        ...

    def comparison(self, operator: str, left: T, right: T) -> T:
        """Give the meaning of one of ``< <= > >= == !=``."""
        ...

    def select(self, condition: T, then: T, otherwise: T) -> T:
        """Give the meaning of ``then`` where the condition holds, and ``otherwise`` elsewhere."""
        ...

    def call(self, function: str, arguments: Sequence[T]) -> T:
        """Give the meaning of a function of :data:`spaces.language.functions.FUNCTIONS`."""
        ...


class Operations(Generic[T]):
    """A base for meanings (:class:`Meaning`) that inherit from it: they refuse the kinds of nodes
    that they say nothing of. Reads, for one, may be known to whoever folds an expression."""

    def axis(self, name: str) -> T:
        """Refuse an axis."""
        raise TypeError(f"the axis {name} has no value here")

    def read(self, name: str, indices: Sequence[T], outside: float | None) -> T:
        """Refuse a read."""
        raise TypeError(f"the entry of {name} is not known here")

    def comparison(self, operator: str, left: T, right: T) -> T:
        """Refuse a comparison."""
        raise TypeError(f"nothing is compared by {operator} here")

    def select(self, condition: T, then: T, otherwise: T) -> T:
        """Refuse a selection."""
        raise TypeError("nothing is selected here")
