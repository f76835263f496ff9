"""Statements of a kernel's body, as data.

Each prints as one statement of C (:mod:`spaces.kernels.text`). Expressions in them are C text: that
of an index, or what the emitters of scalar and vector code write.
"""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True)
class Declaration:
    """A name of C type ``kind``; an array of ``count`` elements, or of as many along each rank, if
    there is a count."""

    kind: str
    name: str
    value: str | None = None
    count: int | tuple[int, ...] | None = None


@dataclass(frozen=True)
class Assignment:
    """``place = value``, or ``place operator= value``."""

    place: str
    value: str
    operator: str = ""


@dataclass(frozen=True)
class Call:
    """A function that is called for its effect: an intrinsic, such as a barrier, or a helper."""

    function: str
    arguments: tuple[str, ...] = ()


@dataclass(frozen=True)
class Return:
    """The end of the kernel for this thread."""


@dataclass(frozen=True)
class Block:
    """Statements with a scope of their own."""

    statements: tuple[Statement, ...]


@dataclass(frozen=True)
class Condition:
    """``then`` where ``test`` holds, and ``otherwise`` elsewhere."""

    test: str
    then: Statement
    otherwise: Statement | None = None


@dataclass(frozen=True)
class Loop:
    """``inner`` for ``name`` from ``first`` to before ``end``, a ``step`` at a time, or one by one.

    The compiler is asked to unroll it ``unroll`` times, all of it if that is True, and left alone
    if it is None. ``also`` are numbers that it finds out before its first turn.
    """

    kind: str
    name: str
    first: str
    end: str
    step: str | None
    inner: Statement
    unroll: int | bool | None = None
    also: tuple[tuple[str, str], ...] = ()


@dataclass(frozen=True)
class While:
    """``inner`` as long as ``test`` holds before it."""

    test: str
    inner: Statement


@dataclass(frozen=True)
class Lines:
    """Text of a template that writes no statements yet."""

    lines: tuple[str, ...]


Statement = Declaration | Assignment | Call | Return | Block | Condition | Loop | While | Lines
