"""Epilogues: small expressions over the accumulator ``x`` and named operands.

``gelu(x + bias[n]) * scale + residual[m,n]`` reads the accumulator, a vector along ``n``, a
scalar and a matrix. The language has numbers, ``+ - * /``, unary minus, parentheses and the
calls of :mod:`spaces.functions`, with Python's precedence. :func:`parse` accepts that and
nothing else; an :class:`Expression` is plain frozen data, and nothing in it can run.
"""

from __future__ import annotations

import ast
import re
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import NoReturn

import numpy as np

from spaces.errors import InputError
from spaces.functions import FUNCTIONS

MAX_LENGTH = 1000
MAX_DEPTH = 32
MAX_NUMBER = float(np.finfo(np.float32).max)

_PRECEDENCE = {"+": 1, "-": 1, "*": 2, "/": 2}
_NEGATION, _PRIMARY = 3, 4


@dataclass(frozen=True)
class Writer:
    """How the leaves and calls of an expression are spelled in some language."""

    accumulator: str
    operand: Callable[[str, tuple[str, ...]], str]
    call: Callable[[str, Sequence[str]], str]
    literal: Callable[[float], str]


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
        for child in self.children:
            yield from child.walk()

    def evaluate(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        """The value in float64, of the shape that ``x`` and the operands broadcast to."""
        wide = {name: np.asarray(operands[name], dtype=np.float64) for name in self.operands}
        with np.errstate(all="ignore"):
            return self._value(np.asarray(x, dtype=np.float64), wide)

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
        :func:`spaces.cpu.vector_math.literal`, for a scalar is no argument for a vector function.
        """
        writer = Writer(accumulator, operand, call or c_call, literal or c_literal)
        return self._text(writer)

    def __str__(self) -> str:
        writer = Writer("x", _operand_text, _call_text, _number_text)
        return self._text(writer)

    @property
    def children(self) -> tuple[Expression, ...]:
        """The nodes directly below, from left to right."""
        return ()

    @property
    def precedence(self) -> int:
        """How tightly the node's own operator binds."""
        return _PRIMARY

    @abstractmethod
    def _value(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray: ...

    @abstractmethod
    def _text(self, writer: Writer) -> str: ...


@dataclass(frozen=True)
class Number(Expression):
    """A finite constant, never negative."""

    value: float

    def _value(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        return np.asarray(self.value)

    def _text(self, writer: Writer) -> str:
        return writer.literal(self.value)


@dataclass(frozen=True)
class Accumulator(Expression):
    """The result of the operator that the epilogue belongs to."""

    def _value(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        return x

    def _text(self, writer: Writer) -> str:
        return writer.accumulator


@dataclass(frozen=True)
class Reference(Expression):
    """An operand, indexed by ``axes`` in this order."""

    name: str
    axes: tuple[str, ...]

    def _value(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        return operands[self.name]

    def _text(self, writer: Writer) -> str:
        return writer.operand(self.name, self.axes)


@dataclass(frozen=True)
class Negation(Expression):
    """Unary minus."""

    inner: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.inner,)

    @property
    def precedence(self) -> int:
        return _NEGATION

    def _value(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        return -self.inner._value(x, operands)

    def _text(self, writer: Writer) -> str:
        return f"-{_nested(self.inner, _PRIMARY, writer)}"


@dataclass(frozen=True)
class Binary(Expression):
    """``left operator right``; the operator is one of ``+ - * /``."""

    operator: str
    left: Expression
    right: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        return (self.left, self.right)

    @property
    def precedence(self) -> int:
        return _PRECEDENCE[self.operator]

    def _value(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        left, right = self.left._value(x, operands), self.right._value(x, operands)
        match self.operator:
            case "+":
                return np.asarray(left + right)
            case "-":
                return np.asarray(left - right)
            case "*":
                return np.asarray(left * right)
            case _:
                return np.asarray(left / right)

    def _text(self, writer: Writer) -> str:
        left = _nested(self.left, self.precedence, writer)
        right = _nested(self.right, self.precedence + 1, writer)
        return f"{left} {self.operator} {right}"


@dataclass(frozen=True)
class Call(Expression):
    """A function of :data:`spaces.functions.FUNCTIONS`, with as many arguments as it takes."""

    function: str
    arguments: tuple[Expression, ...]

    @property
    def children(self) -> tuple[Expression, ...]:
        return self.arguments

    def _value(self, x: np.ndarray, operands: Mapping[str, np.ndarray]) -> np.ndarray:
        values = [argument._value(x, operands) for argument in self.arguments]
        return FUNCTIONS[self.function].reference(*values)

    def _text(self, writer: Writer) -> str:
        return writer.call(self.function, [argument._text(writer) for argument in self.arguments])


def _nested(child: Expression, least: int, writer: Writer) -> str:
    text = child._text(writer)
    return text if child.precedence >= least else f"({text})"


def _operand_text(name: str, axes: tuple[str, ...]) -> str:
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


def parse(text: str, axes: tuple[str, ...] = ("m", "n")) -> Expression:
    """The expression that ``text`` spells; operands are indexed by names among ``axes``.

    ``parse(str(e)) == e`` for every expression. Raises :class:`InputError` for anything outside
    the language, and for an expression that never uses ``x``.
    """
    if not isinstance(text, str):
        raise InputError(f"an epilogue of type {type(text).__name__} was given; allowed: text")
    if len(text) > MAX_LENGTH:
        raise InputError(f"the epilogue has {len(text)} characters; allowed: {MAX_LENGTH}")
    text = re.sub(r"\s", " ", text).strip()
    foreign = re.search(r"[^A-Za-z0-9_.,+*/()\[\] -]", text)
    if foreign:
        _reject(text, f"unexpected character {foreign.group()!r}", foreign.start())
    try:
        tree = ast.parse(text, mode="eval")
    except SyntaxError as error:
        _reject(text, f"malformed ({error.msg})", (error.offset or 1) - 1)
    except (RecursionError, MemoryError):
        _reject(text, f"too deeply nested; allowed: {MAX_DEPTH} levels", 0)
    reader = _Reader(text, axes)
    expression = reader.read(tree.body, 1)
    if not any(isinstance(node, Accumulator) for node in expression.walk()):
        _reject(text, "the accumulator 'x' is never used", 0)
    return expression


def _reject(text: str, problem: str, position: int) -> NoReturn:
    shown = text if len(text) <= 80 else f"{text[:77]}..."
    raise InputError(f"epilogue {shown!r}, character {position + 1}: {problem}")


class _Reader:
    """Turns Python's syntax tree into ours, one whitelisted kind of node at a time."""

    _OPERATORS: Mapping[type[ast.operator], str] = {
        ast.Add: "+",
        ast.Sub: "-",
        ast.Mult: "*",
        ast.Div: "/",
    }

    def __init__(self, text: str, axes: tuple[str, ...]) -> None:
        self._text = text
        self._axes = axes
        self._seen: dict[str, tuple[str, ...]] = {}

    def read(self, node: ast.expr, depth: int) -> Expression:
        """Our node for Python's, which stands ``depth`` levels deep."""
        if depth > MAX_DEPTH:
            self._fail(node, f"too deeply nested; allowed: {MAX_DEPTH} levels")
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self._number(node, value)
            case ast.Name(id="x"):
                return Accumulator()
            case ast.Name(id=name):
                return self._reference(node, name, ())
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                return self._reference(node, name, self._indices(index))
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return Negation(self.read(inner, depth + 1))
            case ast.BinOp(op=operator) if type(operator) in self._OPERATORS:
                left, right = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
                return Binary(self._OPERATORS[type(operator)], left, right)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                self._check_call(node, name, len(arguments))
                return Call(name, tuple(self.read(inner, depth + 1) for inner in arguments))
            case _:
                self._fail(
                    node,
                    f"{self._source(node)!r} is not part of the language; allowed: numbers, x, "
                    "name, name[axes], + - * /, unary -, parentheses, and calls of "
                    + ", ".join(FUNCTIONS),
                )

    def _number(self, node: ast.expr, value: float) -> Number:
        if value > MAX_NUMBER:
            self._fail(node, f"a number is out of range; allowed: 0 to {MAX_NUMBER:g}")
        return Number(float(value))

    def _reference(self, node: ast.expr, name: str, axes: tuple[str, ...]) -> Reference:
        if not re.fullmatch(r"[A-Za-z][A-Za-z0-9_]{0,31}", name):
            self._fail(node, f"bad operand name {name!r}; allowed: a letter, then up to 31 more")
        if name == "x" or name in FUNCTIONS or name in self._axes:
            kind = "the accumulator" if name == "x" else "a function" if name in FUNCTIONS else ""
            self._fail(node, f"{name!r} is {kind or 'an axis'}; an operand needs another name")
        if len(set(axes)) != len(axes):
            self._fail(node, f"an axis of {_operand_text(name, axes)} is repeated; allowed: once")
        before = self._seen.setdefault(name, axes)
        if before != axes:
            both = f"{_operand_text(name, before)} and {_operand_text(name, axes)}"
            self._fail(node, f"{name!r} is indexed as {both}; allowed: one way")
        return Reference(name, axes)

    def _indices(self, index: ast.expr) -> tuple[str, ...]:
        axes = []
        for part in index.elts if isinstance(index, ast.Tuple) else [index]:
            if not isinstance(part, ast.Name) or part.id not in self._axes:
                allowed = ", ".join(self._axes)
                self._fail(part, f"index {self._source(part)!r} is no axis; allowed: {allowed}")
            axes.append(part.id)
        return tuple(axes)

    def _check_call(self, node: ast.expr, name: str, count: int) -> None:
        if name not in FUNCTIONS:
            self._fail(node, f"unknown function {name!r}; known: {', '.join(FUNCTIONS)}")
        arity = FUNCTIONS[name].arity
        if count != arity:
            self._fail(node, f"{name} with {count} arguments; allowed: {arity}")

    def _source(self, node: ast.expr) -> str:
        source = self._text[node.col_offset : node.end_col_offset]
        return source if len(source) <= 40 else f"{source[:37]}..."

    def _fail(self, node: ast.expr, problem: str) -> NoReturn:
        _reject(self._text, problem, node.col_offset)
