"""The value of a node at an element: the text of a number, or a condition."""

from __future__ import annotations

from dataclasses import dataclass

LARGEST = 3.4028234663852886e38
"""The largest number of the language: that of float32."""


@dataclass(frozen=True)
class Known:
    """A condition that is the same everywhere."""

    holds: bool


@dataclass(frozen=True)
class Compared:
    """A comparison, as the language writes it."""

    text: str


@dataclass(frozen=True)
class Negated:
    """A condition that holds where another one does not."""

    inner: Condition


@dataclass(frozen=True)
class Joined:
    """Two conditions that hold both, or of which one holds at least."""

    left: Condition
    right: Condition
    both: bool


Condition = Known | Compared | Negated | Joined
Value = str | Condition


def chosen(condition: Condition, then: str, otherwise: str) -> str:
    """Return ``then`` where the condition holds, and ``otherwise`` elsewhere."""
    match condition:
        case Known(holds):
            return then if holds else otherwise
        case Compared(text):
            return f"select({text}, {then}, {otherwise})"
        case Negated(inner):
            return chosen(inner, otherwise, then)
        case Joined(left, right, both=True):
            return chosen(left, chosen(right, then, otherwise), otherwise)
        case Joined(left, right):
            return chosen(left, then, chosen(right, then, otherwise))


def number(value: Value) -> str:
    """Return a value as a number: 1 where a condition holds, else 0."""
    return value if isinstance(value, str) else chosen(value, "1", "0")


def condition(value: Value) -> Condition:
    """Return a value as a condition: it holds where a number is not 0."""
    return Compared(f"{value} != 0") if isinstance(value, str) else value
