"""Declarations of arrays: ``x: bfloat16[n, 64](order=(1, 0), leading=96)``."""

from __future__ import annotations

import ast
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from math import prod
from typing import Any, NoReturn

from tilewright.spaces.dtypes import INDICES_ALONE, dtype
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.evaluation import OPERATIONS
from tilewright.spaces.language.given import DIGITS
from tilewright.spaces.language.program import Entries
from tilewright.spaces.language.reading.constants import EXAMPLE as CONSTANT
from tilewright.spaces.language.reading.constants import constant
from tilewright.spaces.language.reading.expressions import ExpressionReader, Names, parts
from tilewright.spaces.language.reading.source import Statement
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Negation, Number
from tilewright.spaces.low_bit.values import INTEGERS

MAX_DIMENSION = 2**31
MAX_SIZE = 2**48
"""Elements of an array."""
TABLE = re.compile(f"x[0-9a-f]{{{DIGITS}}}")
"""The name of a table that was given."""
LEAST_SKEW, MOST_SKEW = 1.1, 10.0
"""Exponents of weights of drawn indices. Below, one index has nearly all entries of a table."""


@dataclass(frozen=True)
class Declaration:
    """The properties that a statement declares of an array; None for those that it leaves open."""

    statement: Statement
    name: str
    dtype: str
    shape: tuple[int, ...] | None = None
    order: tuple[int, ...] | None = None
    leading: int | None = None
    drawn: Entries | None = None
    packed: bool = False
    elements: tuple[float, ...] | None = None
    is_complex: bool = False


def declaration(statement: Statement, node: ast.AnnAssign, names: Names) -> Declaration:
    """Return the declaration that a statement spells."""
    if not isinstance(node.target, ast.Name):
        statement.fail(f"malformed declaration; allowed: {EXAMPLE}")
    reader = _Reader(statement, names)
    described, properties = node.annotation, {}
    if isinstance(described, ast.Call):
        properties = reader.properties(described)
        described = described.func
    name, written = node.target.id, reader.element(described)
    kind = COMPLEX.get(written, written)
    if kind != written:
        _check_complex(statement, written, properties, node)
        properties["is_complex"] = True
    if isinstance(described, ast.Subscript):
        properties["shape"] = reader.shape(described)
    if node.value is not None:
        if list(properties) != ["shape"]:
            statement.fail(f"a constant has a shape, and nothing else; allowed: {CONSTANT}")
        elements = constant(statement, name, kind, properties["shape"], node.value)
        properties["elements"] = elements
    if properties.get(PACKED) and kind in CODES:
        properties["drawn"] = Entries(2 ** CODES[kind])
    declared = Declaration(statement, name, kind, **properties)
    _check_entries(declared)
    return declared


EXAMPLE = "x: float32[n, 64](order=(1, 0), leading=96), or t: int32[n](index < 8)"
COMPLEX = {"complex64": "float32", "complex32": "float16", "complex_bfloat16": "bfloat16"}
"""Dtypes of complex numbers, and those of their parts."""
PACKED = "packed"
CODES = {name: bits for name, bits in INTEGERS.items() if name.startswith("u")}
"""Packed elements that are indices, too: their bits, by dtype."""


@dataclass(frozen=True)
class _Reader:
    statement: Statement
    names: Names

    def element(self, node: ast.expr) -> str:
        """Return the dtype, which stands alone or before the shape."""
        name = node.value if isinstance(node, ast.Subscript) else node
        if not isinstance(name, ast.Name):
            self.statement.fail(f"malformed declaration; allowed: {EXAMPLE}", node.col_offset)
        if name.id in COMPLEX:
            return name.id
        try:
            return dtype(name.id).name
        except InputError as error:
            self.statement.fail(str(error), node.col_offset)

    def shape(self, node: ast.Subscript) -> tuple[int, ...]:
        """Whole numbers, or axes for their extents, or sums and products of them."""
        shape = tuple(self._extent(part) for part in parts(node.slice))
        if prod(shape) > MAX_SIZE:
            self.statement.fail(f"{prod(shape)} elements; allowed: up to 2**48", node.col_offset)
        return shape

    def properties(self, node: ast.Call) -> dict[str, Any]:
        """Return ``order``, ``leading``, ``drawn`` and ``packed`` as far as they are given."""
        found: dict[str, Any] = {}
        if [name.id for name in node.args if isinstance(name, ast.Name)] == [PACKED]:
            if node.keywords:
                self._fail(node, "a packed array has no other order and no leading dimension")
            return {PACKED: True}
        if len(node.args) > 1:
            self._fail(node.args[1], "values are drawn in one way")
        for argument in node.args:
            found["drawn"] = self._drawn(argument)
        known: Mapping[str | None, Callable[[ast.expr], object]]
        known = {"order": self._order, "leading": self._extent}
        if "drawn" in found:
            known = {**known, "skew": self._skew, "table": self._table}
        for keyword in node.keywords:
            if keyword.arg not in known:
                self._fail(
                    node, f"unknown property {keyword.arg!r}; known: {', '.join(map(str, known))}"
                )
            found[str(keyword.arg)] = known[keyword.arg](keyword.value)
        if "skew" in found and "table" in found:
            self._fail(node, "a table is given, or drawn with a skew; allowed: one of both")
        how = {name: found.pop(name) for name in ("skew", "table") if name in found}
        if how:
            found["drawn"] = replace(found["drawn"], **how)
        return found

    def _drawn(self, node: ast.expr) -> Entries:
        match node:
            case ast.Compare(
                left=ast.Name(id="index" | "sorted" as kind), ops=[ast.Lt()], comparators=[below]
            ):
                return Entries(self._extent(below), kind == "sorted")
        self._fail(node, "unknown way to draw values; allowed: index < N, sorted < N, packed")

    def _skew(self, node: ast.expr) -> float:
        value = node.value if isinstance(node, ast.Constant) else None
        if type(value) not in (int, float) or not LEAST_SKEW <= value <= MOST_SKEW:  # type: ignore[operator]
            written = ast.unparse(node)
            self._fail(node, f"skew={shown(written)}; allowed: {LEAST_SKEW} to {MOST_SKEW}")
        return float(value)  # type: ignore[arg-type]

    def _table(self, node: ast.expr) -> str:
        if not isinstance(node, ast.Name) or not TABLE.fullmatch(node.id):
            written = shown(ast.unparse(node))
            self._fail(node, f"table={written} is no digest; allowed: what show prints")
        return node.id

    def _order(self, node: ast.expr) -> tuple[int, ...]:
        match node:
            case ast.Tuple(elts=elements):
                values = [e.value for e in elements if isinstance(e, ast.Constant)]
                order = tuple(value for value in values if type(value) is int)
                if len(order) == len(elements):
                    return order
        self._fail(node, "the order is no tuple of dimensions; allowed: such as order=(1, 0)")

    def _extent(self, node: ast.expr) -> int:
        extent = self._value(node, ExpressionReader(self.statement, self.names).index(node))
        if not 1 <= extent <= MAX_DIMENSION:
            self._fail(node, f"{shown(extent)} is out of range; allowed: 1 to {MAX_DIMENSION}")
        return extent

    def _value(self, node: ast.expr, expression: Expression) -> int:
        match expression:
            case Number(value):
                return int(value)
            case AxisValue(name):
                return self.names.axes[name]
            case Negation(inner):
                return -self._value(node, inner)
            case Binary(operator, left, right):
                return OPERATIONS[operator](self._value(node, left), self._value(node, right))
        self._fail(node, f"{expression} is no extent; allowed: whole numbers and axes")

    def _fail(self, node: ast.expr, problem: str) -> NoReturn:
        self.statement.fail(problem, node.col_offset)


def _check_complex(
    statement: Statement, kind: str, properties: Mapping[str, Any], node: ast.AnnAssign
) -> None:
    """Refuse properties that arrays of complex numbers do not have."""
    if node.value is not None:
        statement.fail(f"a constant of {kind}; allowed: real ones, such as {CONSTANT}")
    if other := next((name for name in properties if name != "order"), None):
        statement.fail(f"{other} of {kind}; allowed: order, or an array of real numbers")


def _check_entries(declared: Declaration) -> None:
    """Indices need a dtype of whole numbers with room for them, and some dtypes hold nothing
    else."""
    if declared.drawn is None:
        if declared.dtype in INDICES_ALONE:
            declared.statement.fail(
                f"{declared.name} is {declared.dtype} without a limit; "
                f"allowed: indices alone, such as {declared.dtype}[n](index < 8)"
            )
        return
    element = dtype(declared.dtype)
    if not element.is_integer or declared.drawn.below > element.limits[1] + 1:
        declared.statement.fail(
            f"indices below {declared.drawn.below} in {declared.dtype}; "
            "allowed: an integer dtype that holds them, such as int32"
        )
