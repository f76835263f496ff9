"""The elements of a constant, read from braces: all in one pair, or a pair for each row."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from math import prod

import numpy as np

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.constants import elements_of
from tilewright.spaces.language.reading.source import Statement

EXAMPLE = "C: float32[2, 2] = {{0, 1}, {-1, 0}}"


def constant(
    statement: Statement, name: str, kind: str, shape: tuple[int, ...], node: ast.expr
) -> tuple[float, ...]:
    """Return the elements of a constant of a dtype and shape, rows first."""
    reader = _Reader(statement, shape)
    found = list(reader.elements(node))
    try:
        return elements_of(name, kind, np.array(found))
    except InputError as error:
        statement.fail(str(error), node.col_offset)


class _Reader:
    def __init__(self, statement: Statement, shape: tuple[int, ...]) -> None:
        self._statement = statement
        self._shape = shape

    def elements(self, node: ast.expr) -> Iterator[float]:
        """Yield the elements, rows first."""
        if isinstance(node, ast.Set) and not any(isinstance(e, ast.Set) for e in node.elts):
            return map(self._value, self._within(node, prod(self._shape)))
        return self._nested(node, 0)

    def _nested(self, node: ast.expr, dimension: int) -> Iterator[float]:
        """Yield the elements of rows that have braces each, from a dimension on."""
        if dimension == len(self._shape):
            yield self._value(node)
            return
        for each in self._within(node, self._shape[dimension]):
            yield from self._nested(each, dimension + 1)

    def _within(self, node: ast.expr, wanted: int) -> list[ast.expr]:
        """Return what stands in a pair of braces."""
        found = node.elts if isinstance(node, ast.Set) else []
        if len(found) != wanted:
            what = f"{len(found)} elements in braces" if found else "no elements in braces"
            shape = ", ".join(map(str, self._shape))
            problem = f"{what}; allowed: {wanted} for the shape [{shape}], such as {EXAMPLE}"
            self._statement.fail(problem, node.col_offset)
        return found

    def _value(self, node: ast.expr) -> float:
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                try:
                    return float(value)
                except OverflowError:
                    pass
            case ast.UnaryOp(op=ast.USub(), operand=ast.Constant() as inner):
                return -self._value(inner)
        text = shown(ast.unparse(node))
        self._statement.fail(f"{text} is no element; allowed: finite numbers", node.col_offset)
