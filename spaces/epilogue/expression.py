"""Epilogues: expressions of :mod:`spaces.language` over the sum ``x`` and named operands.

``gelu(x + bias[n]) * scale[] + residual[m,n]`` reads the sum, a vector along ``n``, a scalar and a
matrix. It has numbers, ``+ - * /``, unary minus, parentheses, calls of :data:`FUNCTIONS`,
``select(x > 0, x, slope * x)``, and operands that are read by axes of the output. :func:`parse`
accepts that and nothing else.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import NoReturn, TypeVar

import numpy as np

from tilewright.spaces.epilogue.scalars import with_brackets, without_brackets
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language import functions
from tilewright.spaces.language.evaluation import Elementwise
from tilewright.spaces.language.meaning import Meaning
from tilewright.spaces.language.reading.expressions import ExpressionReader, Names
from tilewright.spaces.language.reading.source import Statement
from tilewright.spaces.language.reading.spelt import CONDITIONS
from tilewright.spaces.language.reading.spelt import FUNCTIONS as SPELT
from tilewright.spaces.language.text import entry_text, expression_text
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
    Select,
)

SUM = "x"
"""The name of the sum in an epilogue."""
COMMA = ","
"""The separator of an operand's axes in an epilogue's text."""
FUNCTIONS = tuple(functions.FUNCTIONS)
"""The functions that an epilogue may call."""
_NAMES_TOO = frozenset(FUNCTIONS[FUNCTIONS.index("log") :])
"""Functions that operands may be called like: some were, before epilogues knew these."""

MAX_LENGTH = 1000
MAX_DEPTH = 32
MAX_OPERANDS = 64

T = TypeVar("T")


@dataclass(frozen=True)
class Epilogue:
    """The expression applied to each sum: ``value`` reads the sum and the operands' elements beside
    it.
    """

    value: Expression

    @cached_property
    def operands(self) -> dict[str, tuple[str, ...]]:
        """Axes of each operand by name, in order of first appearance; a scalar has none."""
        return {read.name: _axes(read) for read in self.value.reads if read.name != SUM}

    @cached_property
    def functions(self) -> frozenset[str]:
        """Names of the functions called, casts included."""
        return frozenset(node.function for node in self.value.walk() if isinstance(node, Call))

    @cached_property
    def selects(self) -> bool:
        """Tell whether it contains a select."""
        return any(isinstance(node, Select) for node in self.value.walk())

    def fold(self, meaning: Meaning[T], read: Mapping[str, T]) -> T:
        """Give the expression a meaning; ``read`` has the meaning of the sum and of each operand by
        name.
        """
        return self.value.fold(meaning, lambda n: read[n.name] if isinstance(n, Read) else None)

    def evaluate(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        """Return the value in float64, of the shape that ``x`` and the operands broadcast to."""
        given = {SUM: x, **{name: operands[name] for name in self.operands}}
        wide = {name: np.asarray(array, dtype=np.float64) for name, array in given.items()}
        with np.errstate(all="ignore"):
            return np.asarray(self.fold(Elementwise(), wide))

    def __str__(self) -> str:
        return expression_text(self.value, COMMA)

    @property
    def asked(self) -> str:
        """The text as people write it, whose scalars have brackets."""
        return with_brackets(str(self), [name for name, axes in self.operands.items() if not axes])


def parse(text: str, axes: tuple[str, ...] = ("m", "n")) -> Epilogue:
    """Return the epilogue that ``text`` spells; operands are indexed by names among ``axes``.
    Scalars have brackets around nothing, or none as in descriptions
    (:mod:`spaces.epilogue.scalars`).

    ``parse(str(e)) == e`` for every epilogue. Raises :class:`InputError` for anything that is none,
    and for an expression that never uses ``x``.
    """
    if not isinstance(text, str):
        raise InputError(f"an epilogue of type {type(text).__name__} was given; allowed: text")
    if len(text) > MAX_LENGTH:
        raise InputError(f"the epilogue has {len(text)} characters; allowed: {MAX_LENGTH}")
    statement = _Statement(without_brackets(re.sub(r"\s", " ", text).strip()), 1)
    statement.check()
    found = statement.expressions(0)
    if len(found) != 1:
        statement.fail(f"malformed; allowed: one expression, not {len(found)}")
    called = (*FUNCTIONS, *SPELT, *CONDITIONS, "select")
    reader = ExpressionReader(statement, _Names(dict.fromkeys(axes, 1), {}), called)
    value = reader.read(found[0])
    reader.refuse_parts(found[0], value)
    _check(statement, value)
    return Epilogue(value)


class _Statement(Statement):
    """The text of an epilogue."""

    def fail(self, problem: str, position: int = 0) -> NoReturn:
        raise InputError(f"epilogue {shown(self.text)}, character {position + 1}: {problem}")

    def refuse(self, problem: str) -> NoReturn:
        """Refuse it as a whole."""
        raise InputError(f"epilogue {shown(self.text)}: {problem}")


class _Names(Names):
    """Names of an epilogue: a name that is no axis is an operand, or the sum."""

    def problem(self, name: str, rank: int, ahead: bool) -> str | None:
        if name == SUM:
            return f"{SUM!r} is the accumulator; it has no index" if rank else None
        is_function = name in FUNCTIONS and name not in _NAMES_TOO
        if is_function or name in self.axes:
            kind = "a function" if is_function else "an axis"
            return f"{name!r} is {kind}; an operand needs another name"
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,31}", name):
            return f"bad operand name {name!r}; allowed: a letter, then up to 31 more"
        return None

    def no_index(self, name: str) -> str:
        return f"index {name!r} is no axis; allowed: {', '.join(self.axes)}"


def _check(statement: _Statement, value: Expression) -> None:
    """Refuse what the language has and epilogues have not."""
    operands: dict[str, tuple[str, ...]] = {}
    for node in _elements(value):
        match node:
            case Number() | Negation() | Call() | Select() | Comparison():
                continue
            case Binary("+" | "-" | "*" | "/"):
                continue
            case Read(name):
                if problem := _problem(node, operands.setdefault(name, _axes(node))):
                    statement.refuse(problem)
            case AxisValue(name):
                statement.refuse(f"{name!r} is an axis; an operand needs another name")
            case _:
                statement.refuse(f"'{node}' is not part of an epilogue; allowed there: + - * /")
    if SUM not in operands:
        statement.refuse(f"the accumulator {SUM!r} is never used")
    if len(operands) - 1 > MAX_OPERANDS:
        statement.refuse(f"{len(operands) - 1} operands; allowed: {MAX_OPERANDS}")
    if _levels(value) > MAX_DEPTH:
        statement.refuse(f"too deeply nested; allowed: {MAX_DEPTH} levels")


def _problem(read: Read, before: tuple[str, ...]) -> str | None:
    """Say why an operand cannot be read so, which was read by the axes ``before``."""
    axes = _axes(read)
    for index, axis in zip(read.indices, axes, strict=True):
        if not isinstance(index, AxisValue):
            return f"index '{axis}' is no axis; operands are read by axes of the output"
    if len(set(axes)) != len(axes):
        return f"an axis of {entry_text(read.name, axes, COMMA)} is repeated; allowed: once"
    if axes != before:
        both = " and ".join(entry_text(read.name, each, COMMA) for each in (before, axes))
        return f"{read.name!r} is indexed as {both}; allowed: one way"
    return None


def _axes(read: Read) -> tuple[str, ...]:
    return tuple(map(str, read.indices))


def _elements(node: Expression) -> list[Expression]:
    """Return the nodes from left to right, without those in indices."""
    below = () if isinstance(node, Read) else node.children
    return [node, *(inner for child in below for inner in _elements(child))]


def _levels(node: Expression) -> int:
    below = () if isinstance(node, Read) else node.children
    return 1 + max(map(_levels, below), default=0)
