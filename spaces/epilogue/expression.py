"""Epilogues: small expressions over the accumulator ``x`` and named operands.

``gelu(x + bias[n]) * scale + residual[m,n]`` reads the accumulator, a vector along ``n``, a
scalar and a matrix. The language has numbers, ``+ - * /``, unary minus, parentheses and the
calls of :mod:`spaces.epilogue.functions`, with Python's precedence. :func:`parse` accepts that and
nothing else; an :class:`Expression` is plain frozen data, and nothing in it can run.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Mapping
from typing import NoReturn

import numpy as np

from spaces.epilogue.functions import FUNCTIONS
from spaces.epilogue.tree import (
    Accumulator,
    Binary,
    Call,
    Expression,
    Negation,
    Number,
    Reference,
    operand_text,
)
from spaces.errors import InputError

__all__ = ["Expression", "parse"]

MAX_LENGTH = 1000
MAX_DEPTH = 32
MAX_OPERANDS = 64
MAX_NUMBER = float(np.finfo(np.float32).max)
_GLUED = re.compile(r"(?<![\w.])(\d++\.?+\d*+|\.\d++)([eE][+-]?\d++)?+[A-Za-z_]")
"""A number with a letter at its end, as in ``1if``, of which Python's parser would warn."""


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
    if glued := _GLUED.search(text):
        problem = f"a number that ends in {glued.group()[-1]!r} is not part of the language"
        _reject(text, problem, glued.end() - 1)
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
    if len(expression.operands) > MAX_OPERANDS:
        _reject(text, f"{len(expression.operands)} operands; allowed: {MAX_OPERANDS}", 0)
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
            self._fail(node, f"an axis of {operand_text(name, axes)} is repeated; allowed: once")
        before = self._seen.setdefault(name, axes)
        if before != axes:
            both = f"{operand_text(name, before)} and {operand_text(name, axes)}"
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
