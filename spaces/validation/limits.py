"""Limits of fields that come from outside, as data beside the field's type.

``cores: Annotated[int, Whole(1, 4096)]`` declares a field; ``value in Whole(1, 4096)`` tests a
value of any type, and ``str`` of a limit is what an error says is allowed.
"""

from __future__ import annotations

from collections.abc import Container
from dataclasses import dataclass

from tilewright.spaces.errors import InputError, shown


@dataclass(frozen=True)
class Whole:
    """Whole numbers from ``least`` to ``most``; with ``doubling``, powers of two among them."""

    least: int
    most: int
    doubling: bool = False

    def __contains__(self, value: object) -> bool:
        if type(value) is not int or not self.least <= value <= self.most:
            return False
        return not self.doubling or value & (value - 1) == 0

    def __str__(self) -> str:
        kind = "powers of two" if self.doubling else "whole numbers"
        return f"{kind} from {self.least} to {self.most}"


@dataclass(frozen=True)
class Real:
    """Numbers from ``least`` to ``most``."""

    least: float
    most: float

    def __contains__(self, value: object) -> bool:
        return type(value) in (int, float) and self.least <= value <= self.most  # type: ignore

    def __str__(self) -> str:
        return f"numbers from {self.least:g} to {self.most:g}"


@dataclass(frozen=True)
class Text:
    """Text of at most ``most`` characters that print: none that moves a cursor or colours."""

    most: int

    def __contains__(self, value: object) -> bool:
        return isinstance(value, str) and len(value) <= self.most and value.isprintable()

    def __str__(self) -> str:
        return f"at most {self.most} printable characters"


@dataclass(frozen=True)
class Texts:
    """A tuple of at most ``most`` texts, each within ``each``."""

    most: int
    each: Text

    def __contains__(self, value: object) -> bool:
        return (
            isinstance(value, tuple)
            and len(value) <= self.most
            and all(text in self.each for text in value)
        )

    def __str__(self) -> str:
        return f"at most {self.most} texts of {self.each}"


@dataclass(frozen=True)
class Flag:
    """True or false."""

    def __contains__(self, value: object) -> bool:
        return isinstance(value, bool)

    def __str__(self) -> str:
        return "true or false"


NAME = Text(256)
"""Names of hardware, compilers and versions."""


def check(name: str, value: object, limit: Container[object]) -> None:
    """Raise :class:`InputError` that names field, value and what is allowed unless it fits."""
    if value not in limit:
        raise InputError(f"{name}={shown(value)} is not allowed; allowed: {limit}")
