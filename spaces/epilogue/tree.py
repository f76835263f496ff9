"""The tree of an epilogue: what it reads, what it means, how it is written.

:mod:`spaces.epilogue.expression` has the language and makes trees from text.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from spaces.epilogue.functions import FUNCTIONS

T = TypeVar("T")

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}
_NEGATION, _PRIMARY = 3, 4


@dataclass(frozen=True)
class Writer:
    """How the leaves and calls of an expression are spelled in some language."""

    accumulator: str
    operand: Callable[[str, tuple[str, ...]], str]
    call: Callable[[str, Sequence[str]], str]
    literal: Callable[[float], str]


class Meaning(Protocol[T]):
    """What each kind of node stands for: numbers, arrays, or anything else that can be combined."""

    def accumulator(self) -> T:
        """Of ``x``."""
        ...

    def number(self, value: float) -> T:
        """Of a constant."""
        ...

    def operand(self, name: str) -> T:
        """Of the operand called so."""
        ...

    def negation(self, inner: T) -> T:
        """Of unary minus."""
        ...

    def binary(self, operator: str, left: T, right: T) -> T:
        """Of one of ``+ - * /``."""
        ...

    def call(self, function: str, arguments: Sequence[T]) -> T:
        """Of a function of :data:`spaces.epilogue.functions.FUNCTIONS`."""
        ...


@dataclass(frozen=True)
class Exact:
    """The meaning in float64 (:class:`Meaning`): arrays that broadcast against each other."""

    x: np.ndarray
    operands: Mapping[str, np.ndarray]

    def accumulator(self) -> np.ndarray:
        """The array ``x``."""
        return self.x

    def number(self, value: float) -> np.ndarray:
        """An array without dimensions."""
        return np.asarray(value)

    def operand(self, name: str) -> np.ndarray:
        """The operand's array."""
        return self.operands[name]

    def negation(self, inner: np.ndarray) -> np.ndarray:
        """Element by element."""
        return -inner

    def binary(self, operator: str, left: np.ndarray, right: np.ndarray) -> np.ndarray:
        """Element by element."""
        return np.asarray(_OPERATIONS[operator](left, right))

    def call(self, function: str, arguments: Sequence[np.ndarray]) -> np.ndarray:
        """As :mod:`spaces.epilogue.functions` has it."""
        return FUNCTIONS[function].reference(*arguments)


_OPERATIONS = {"+": np.add, "-": np.subtract, "*": np.multiply, "/": np.divide}


class Expression(ABC):
    """A node of the tree. Frozen and hashable; equal trees are equal."""

    @property
    def operands(self) -> dict[str, tuple[str, ...]]:
        """Axes of each operand by name, in order of first appearance; a scalar has none."""
        return {node.name: node.axes for node in self.walk() if isinstance(node, Reference)}

    @property
    def functions(self) -> frozenset[str]:
        """Names of the functions called, casts included."""
        return frozenset(node.function for node in self.walk() if isinstance(node, Call))

    def walk(self) -> Iterator[Expression]:
        """This node and all below it, from left to right."""
        yield self
        for child in self._children:
            yield from child.walk()

    def evaluate(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        """The value in float64, of the shape that ``x`` and the operands broadcast to."""
        wide = {name: np.asarray(operands[name], dtype=np.float64) for name in self.operands}
        with np.errstate(all="ignore"):
            return self.fold(Exact(np.asarray(x, dtype=np.float64), wide))

    def emit(
        self,
        accumulator: str,
        operand: Callable[[str, tuple[str, ...]], str],
        call: Callable[[str, Sequence[str]], str] | None = None,
        literal: Callable[[float], str] | None = None,
    ) -> str:
        """One C expression. ``accumulator`` and what ``operand(name, axes)`` returns must be
        primary expressions: names, calls, subscripts.

        A call of ``gelu`` becomes ``tw_gelu(...)`` unless ``call`` says otherwise, a number a
        float literal unless ``literal`` does: code on vector types passes
        :func:`spaces.cpu.tiles.vector_math.literal`, for a scalar is no argument for a vector
        function.
        """
        writer = Writer(accumulator, operand, call or c_call, literal or c_literal)
        return self._text(writer)

    def __str__(self) -> str:
        writer = Writer("x", operand_text, _call_text, _number_text)
        return self._text(writer)

    @property
    def _children(self) -> tuple[Expression, ...]:
        """The nodes directly below, from left to right."""
        return ()

    @property
    def _precedence(self) -> int:
        """How tightly the node's own operator binds."""
        return _PRIMARY

    @abstractmethod
    def fold(self, meaning: Meaning[T]) -> T:
        """What the tree stands for, if ``meaning`` says so of each kind of node."""

    @abstractmethod
    def _text(self, writer: Writer) -> str: ...


@dataclass(frozen=True)
class Number(Expression):
    """A finite constant, never negative."""

    value: float

    def fold(self, meaning: Meaning[T]) -> T:
        """The constant's meaning."""
        return meaning.number(self.value)

    def _text(self, writer: Writer) -> str:
        return writer.literal(self.value)


@dataclass(frozen=True)
class Accumulator(Expression):
    """The result of the operator that the epilogue belongs to."""

    def fold(self, meaning: Meaning[T]) -> T:
        """The accumulator's meaning."""
        return meaning.accumulator()

    def _text(self, writer: Writer) -> str:
        return writer.accumulator


@dataclass(frozen=True)
class Reference(Expression):
    """An operand, indexed by ``axes`` in this order."""

    name: str
    axes: tuple[str, ...]

    def fold(self, meaning: Meaning[T]) -> T:
        """The operand's meaning."""
        return meaning.operand(self.name)

    def _text(self, writer: Writer) -> str:
        return writer.operand(self.name, self.axes)


@dataclass(frozen=True)
class Negation(Expression):
    """Unary minus."""

    inner: Expression

    @property
    def _children(self) -> tuple[Expression, ...]:
        return (self.inner,)

    @property
    def _precedence(self) -> int:
        return _NEGATION

    def fold(self, meaning: Meaning[T]) -> T:
        """The meaning of minus what is inside."""
        return meaning.negation(self.inner.fold(meaning))

    def _text(self, writer: Writer) -> str:
        return f"-{_nested(self.inner, _PRIMARY, writer)}"


@dataclass(frozen=True)
class Binary(Expression):
    """``left operator right``; the operator is one of ``+ - * /``."""

    operator: str
    left: Expression
    right: Expression

    @property
    def _children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    @property
    def _precedence(self) -> int:
        return _PRECEDENCE[self.operator]

    def fold(self, meaning: Meaning[T]) -> T:
        """The meaning of both sides, combined."""
        return meaning.binary(self.operator, self.left.fold(meaning), self.right.fold(meaning))

    def _text(self, writer: Writer) -> str:
        left = _nested(self.left, self._precedence, writer)
        right = _nested(self.right, self._precedence + 1, writer)
        return f"{left} {self.operator} {right}"


@dataclass(frozen=True)
class Call(Expression):
    """A function of :data:`spaces.epilogue.functions.FUNCTIONS`, with as many arguments as it
    takes.
    """

    function: str
    arguments: tuple[Expression, ...]

    @property
    def _children(self) -> tuple[Expression, ...]:
        return self.arguments

    def fold(self, meaning: Meaning[T]) -> T:
        """The meaning of the function of what its arguments mean."""
        return meaning.call(self.function, [child.fold(meaning) for child in self.arguments])

    def _text(self, writer: Writer) -> str:
        return writer.call(self.function, [argument._text(writer) for argument in self.arguments])


def _nested(child: Expression, least: int, writer: Writer) -> str:
    text = child._text(writer)
    return text if child._precedence >= least else f"({text})"


def operand_text(name: str, axes: tuple[str, ...]) -> str:
    """An operand as the language writes it."""
    return f"{name}[{','.join(axes)}]" if axes else name


def _call_text(function: str, arguments: Sequence[str]) -> str:
    return f"{function}({', '.join(arguments)})"


def _number_text(value: float) -> str:
    return repr(value).removesuffix(".0")


def c_call(function: str, arguments: Sequence[str]) -> str:
    """A call of the function's C form, which has the prefix ``tw_``."""
    return f"tw_{function}({', '.join(arguments)})"


def c_literal(value: float) -> str:
    """A float literal of C."""
    return f"{value!r}f"
