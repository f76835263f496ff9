"""Expressions, read from Python's syntax tree one whitelisted kind of node at a time."""

from __future__ import annotations

import ast
import re
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, NoReturn

import numpy as np

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.affine import affine
from tilewright.spaces.language.functions import FUNCTIONS, REDUCERS
from tilewright.spaces.language.reading import spelling, spelt
from tilewright.spaces.language.reading.reductions import SUGAR
from tilewright.spaces.language.reading.source import NAME, NAMES, RESERVED, Statement
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
    Reduction,
    Select,
)

MAX_DEPTH = 64
MAX_JOINED = 8
"""The most that ``and``, ``or`` and ``not`` may occur in the condition of a ``select``."""
MAX_TABLES = 8
"""Tables that an index is read from, one by an entry of the other."""
OF_COMPLEX = ("real", "imag", "conj")
"""Functions of complex numbers, which :mod:`.pairs` takes apart."""
CALLED = (*FUNCTIONS, *spelt.FUNCTIONS, *spelt.CONDITIONS, "select", "inside", "size", *OF_COMPLEX)
"""Names that are called like functions."""
MOST_SHOWN = 40
"""Characters of an expression that a message repeats."""
ALLOWED = (
    "numbers, axes, x[i], + - * / // %, exp(x), select(c, a, b), inside(x[i], value), sum[j](...)"
)
"""The parts of expressions, for messages."""
MAX_NUMBER = float(np.finfo(np.float32).max)

_OPERATORS: Mapping[type[ast.operator], str] = {
    ast.Add: "+",
    ast.Sub: "-",
    ast.Mult: "*",
    ast.Div: "/",
    ast.FloorDiv: "//",
    ast.Mod: "%",
}
_COMPARISONS: Mapping[type[ast.cmpop], str] = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}


@dataclass
class Names:
    """The names of a program and their meanings while its statements are read one after another.

    ``ranks`` are the dimensions of each array known so far, by declaration, definition or use.
    ``defined`` are the stages that exist, ``lines`` all stages with the line that defines each;
    ``indices`` the arrays whose entries may be indices, ``truths`` those of bool; ``defining`` is
    the stage that is read now.
    """

    axes: Mapping[str, int]
    lines: Mapping[str, int]
    ranks: dict[str, int] = field(default_factory=dict)
    defined: set[str] = field(default_factory=set)
    indices: set[str] = field(default_factory=set)
    truths: set[str] = field(default_factory=set)
    defining: str = ""

    def problem(self, name: str, rank: int, ahead: bool) -> str | None:
        """Say why the array ``name`` cannot be read here with so many indices; stages that do not
        exist yet may be, if ``ahead``."""
        if name == "inf":
            return "inf is allowed in inside(name[...], -inf) alone; elsewhere write 1e30, or where"
        if not NAME.fullmatch(name) or name in RESERVED:
            return f"bad name {shown(name)}; allowed: {NAMES}"
        if name in self.axes:
            return f"{name!r} is an axis; an operand needs another name"
        if name == self.defining and not ahead:
            return f"stage {name!r} is read before it exists; {spelling.RECURRENCE}"
        if name in self.lines and name not in self.defined and not ahead:
            return f"stage {name!r} is read before it exists; line {self.lines[name]} defines it"
        known = self.ranks.setdefault(name, rank)
        if known != rank:
            return f"{name!r} is read with {rank} indices; it has {known} dimensions"
        return None

    def no_index(self, name: str) -> str:
        """Say why no entry of the array ``name`` can be an index."""
        axes = ", ".join(self.axes)
        return (
            f"index {name!r} is unknown; allowed: axes ({axes}), "
            "and operands declared with index < N"
        )


class ExpressionReader:
    """Turns Python's trees of one statement into ours; ``called`` are the functions it may call."""

    def __init__(
        self, statement: Statement, names: Names, called: Collection[str] = CALLED
    ) -> None:
        self._statement = statement
        self._names = names
        self._called = called

    def read(self, node: ast.expr, depth: int = 1) -> Expression:
        """Return our node for Python's, which stands ``depth`` levels deep."""
        if depth > MAX_DEPTH:
            self._fail(node, f"too deeply nested; allowed: {MAX_DEPTH} levels")
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self._number(node, value)
            case ast.Name(id=name):
                return AxisValue(name) if name in self._names.axes else self._read(node, name, [])
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                return self._read(node, name, [self.index(i, depth + 1) for i in parts(index)])
            case ast.UnaryOp(op=ast.USub(), operand=inner):
                return Negation(self.read(inner, depth + 1))
            case ast.BinOp(op=operator) if type(operator) in _OPERATORS:
                left, right = self.read(node.left, depth + 1), self.read(node.right, depth + 1)
                return Binary(_OPERATORS[type(operator)], left, right)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                return self._call(node, name, arguments, depth)
            case ast.Call(func=ast.Subscript(), args=[body], keywords=[]):
                return self._reduction(node.func, body, depth)
            case ast.Call(func=ast.Name(id=name), args=[*_, _]) if self._is_reducer(name):
                self._fail(node, self._with_axes(name, node.args[0]))
            case ast.Compare():
                problem = "a comparison is the condition of select or where, nothing else"
                self._fail(node, f"{problem}; write select({self._text(node)}, 1, 0)")
        near = spelling.instead(node, self._text) or f"allowed: {ALLOWED}"
        self._fail(node, f"{self._source(node)} is not part of the language; {near}")

    def conditions(self, node: ast.expr, depth: int = 1) -> list[Comparison]:
        """Return the comparisons that hold together: ``a < b <= c`` and those that ``and``
        joins."""
        match node:
            case ast.BoolOp(op=ast.And(), values=values):
                return [c for value in values for c in self.conditions(value, depth + 1)]
            case ast.Compare(ops=operators) if all(type(o) in _COMPARISONS for o in operators):
                sides = [self.read(side, depth + 1) for side in (node.left, *node.comparators)]
                pairs = zip(operators, sides, sides[1:], strict=False)
                return [Comparison(_COMPARISONS[type(o)], left, right) for o, left, right in pairs]
            case ast.Name(id=name) | ast.Subscript(value=ast.Name(id=name)) if (
                name in self._names.truths
            ):
                return [Comparison("!=", self.read(node, depth), Number(0.0))]
            case ast.Call(func=ast.Name(id=name), args=[_], keywords=[]) if (
                name in spelt.CONDITIONS and name in self._called
            ):
                return [self._spelt(node, name, spelt.CONDITIONS[name], depth)]
        near = "allowed: < <= > >= == != between expressions, isnan(x), and 'and'"
        if isinstance(node, ast.BoolOp):
            near = spelling.EITHER
        self._fail(node, f"{self._source(node)} is no condition; {near}")

    def refuse_parts(self, node: ast.expr, found: Expression) -> None:
        """Refuse a condition or an index that reduces, or reads what does not exist yet."""
        if any(isinstance(inner, Reduction) for inner in found.walk()):
            self._fail(node, f"{self._source(node)} reduces; allowed: a stage of its own")
        for read in found.reads:
            if problem := self._names.problem(read.name, len(read.indices), False):
                self._fail(node, problem)

    def index(self, node: ast.expr, depth: int = 1) -> Expression:
        """Return an index of an array: affine in axes and entries of integer arrays."""
        found = self.read(node, depth)
        if isinstance(found, AxisValue):
            return found
        self.refuse_parts(node, found)
        if (tables := _tables(found)) > MAX_TABLES:
            self._fail(node, f"{tables} tables within tables; allowed: {MAX_TABLES}")
        for read in found.reads:
            if read.name not in self._names.indices:
                self._fail(node, self._names.no_index(read.name))
        try:
            affine(found)
        except InputError as error:
            self._fail(node, str(error))
        return found

    def _number(self, node: ast.expr, value: float) -> Number:
        if value > MAX_NUMBER:
            self._fail(node, f"a number is out of range; allowed: 0 to {MAX_NUMBER:g}")
        if value != float(value):
            self._fail(node, f"{value} is no float64; allowed: whole numbers up to 2**53")
        return Number(float(value))

    def _read(
        self,
        node: ast.expr,
        name: str,
        indices: Sequence[Expression],
        outside: float | None = None,
    ) -> Read:
        """Return the read of an array: of a stage that does not exist yet, if a value ``outside``
        of it says what the first step reads."""
        if problem := self._names.problem(name, len(indices), outside is not None):
            self._fail(node, problem)
        return Read(name, tuple(indices), outside)

    def _call(self, node: ast.Call, name: str, arguments: list[ast.expr], depth: int) -> Expression:
        special = {"select": (3, self._select), "inside": (2, self._inside)}
        if name not in self._called:
            if self._is_reducer(name) and len(arguments) == 1:
                self._fail(node, self._with_axes(name, arguments[0]))
            known = [each for each in self._called if each not in spelling.CASTS]
            near = spelling.unknown(name, known, spelling.FUNCTIONS)
            self._fail(node, f"unknown function {name!r}; {near}")
        if name == "size":
            return self._size(node, arguments)
        if name in spelt.CONDITIONS:
            problem = f"{name}(...) is a condition of select or where, nothing else"
            self._fail(node, f"{problem}; write select({self._text(node)}, 1, 0)")
        arity = FUNCTIONS[name].arity if name in FUNCTIONS else special.get(name, (1,))[0]
        if len(arguments) != arity:
            axes = self._is_reducer(name) and len(arguments) == 1
            near = f", or {self._reduced(name, arguments[0])}" if axes else ""
            self._fail(node, f"{name} with {len(arguments)} arguments; allowed: {arity}{near}")
        if name in special:
            return special[name][1](arguments, depth)
        if name in spelt.FUNCTIONS:
            return self._spelt(node, name, spelt.FUNCTIONS[name], depth)
        found = tuple(self.read(argument, depth + 1) for argument in arguments)
        return (spelt.power(found) if name == "pow" else None) or Call(name, found)

    def _spelt(self, node: ast.Call, name: str, known: spelt.Spelt, depth: int) -> Any:
        """Return the text by which a call of one argument is spelt."""
        argument = self.read(node.args[0], depth + 1)
        if known.repeats and not spelt.repeatable(argument):
            problem = f"the argument of {name} has more than {spelt.MAX_REPEATED} parts"
            self._fail(node, f"{problem}; allowed: a stage of its own")
        return known.meaning(argument)

    def _select(self, arguments: list[ast.expr], depth: int) -> Expression:
        condition, *values = arguments
        then, otherwise = (self.read(value, depth + 1) for value in values)
        joined = sum(isinstance(each, ast.boolop | ast.Not) for each in ast.walk(condition))
        if joined > MAX_JOINED:
            self._fail(condition, f"{joined} times and, or, not; allowed: {MAX_JOINED}")
        return self._chosen(condition, then, otherwise, depth + 1)

    def _chosen(
        self, condition: ast.expr, then: Expression, otherwise: Expression, depth: int
    ) -> Expression:
        """Return ``then`` where the condition holds: ``or`` tries one after the other, ``not``
        swaps."""
        match condition:
            case ast.BoolOp(op=ast.And(), values=values):
                for value in reversed(values):
                    then = self._chosen(value, then, otherwise, depth + 1)
                return then
            case ast.BoolOp(op=ast.Or(), values=values):
                for value in reversed(values):
                    otherwise = self._chosen(value, then, otherwise, depth + 1)
                return otherwise
            case ast.UnaryOp(op=ast.Not(), operand=inner):
                return self._chosen(inner, otherwise, then, depth + 1)
        for comparison in reversed(self.conditions(condition, depth)):
            then = Select(comparison, then, otherwise)
        return then

    def _inside(self, arguments: list[ast.expr], depth: int) -> Expression:
        entry, outside = arguments
        match entry:
            case ast.Subscript(value=ast.Name(id=name), slice=index):
                indices = [self.index(i, depth + 2) for i in parts(index)]
                return self._read(entry, name, indices, self._outside(outside))
        self._fail(entry, "inside(...) is for one entry; allowed: inside(x[...], value)")

    def _outside(self, node: ast.expr) -> float:
        match node:
            case ast.UnaryOp(op=ast.USub(), operand=ast.Name() | ast.Constant() as inner):
                return -self._outside(inner)
            case ast.Name(id="inf"):
                return float("inf")
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                return self._number(node, value).value
        self._fail(node, f"{self._source(node)} is no value outside; allowed: a number, inf, -inf")

    def _size(self, node: ast.expr, arguments: list[ast.expr]) -> Expression:
        size = 1
        for axis in self._axes(arguments):
            size *= self._names.axes[axis]
        return self._number(node, size)

    def _reduction(self, head: ast.expr, body: ast.expr, depth: int) -> Expression:
        match head:
            case ast.Subscript(value=ast.Name(id=name), slice=over):
                if name not in REDUCERS and name not in SUGAR:
                    near = spelling.unknown(name, [*REDUCERS, *SUGAR], spelling.REDUCERS)
                    self._fail(head, f"unknown reducer {name!r}; {near}")
                nodes, condition = _over(over)
                axes = self._axes(nodes)
                if not axes:
                    self._fail(head, f"{name} over no axis; allowed: one axis or more")
                domain = self._domain(condition, axes, depth) if condition else ()
                return Reduction(name, axes, self.read(body, depth + 1), domain)
        self._fail(head, f"{self._source(head)} is no reducer; allowed: reducer[axes](...)")

    def _domain(self, node: ast.expr, axes: tuple[str, ...], depth: int) -> tuple[Comparison, ...]:
        """Return what bounds one reduction: conditions, each on an axis that it reduces over."""
        found = self.conditions(node, depth + 1)
        for condition in found:
            self.refuse_parts(node, condition)
            if condition.axes.isdisjoint(axes):
                problem = f"'{condition}' names no axis that is reduced; allowed: conditions on"
                self._fail(node, f"{problem} {', '.join(axes)}")
        return tuple(dict.fromkeys(found))

    def _is_reducer(self, name: str) -> bool:
        """Tell whether the name is a reducer's, and reducers are allowed here."""
        return "inside" in self._called and (name in REDUCERS or name in SUGAR)

    def _with_axes(self, name: str, body: ast.expr) -> str:
        return f"{name} names the axes that it reduces; write {self._reduced(name, body)}"

    def _reduced(self, name: str, body: ast.expr) -> str:
        """Return the spelling of a reduction that was written without its axes: of those that the
        stage does not keep."""
        kept, _, _ = self._statement.text.partition("=")
        found = [n.id for n in ast.walk(body) if isinstance(n, ast.Name)]
        axes = [axis for axis in dict.fromkeys(found) if axis in self._names.axes]
        over = [axis for axis in axes if not re.search(rf"\b{axis}\b", kept)] or axes
        return f"{name}[{', '.join(over) or 'j'}]({self._text(body)})"

    def _axes(self, nodes: Sequence[ast.expr]) -> tuple[str, ...]:
        return axis_names(self._statement, nodes, self._names.axes)

    def _source(self, node: ast.expr) -> str:
        return shown(self._text(node))

    def _text(self, node: ast.expr) -> str:
        """Quote the source of a node; ``...`` if that is more than a few words."""
        text = self._statement.text[node.col_offset : node.end_col_offset]
        return text if len(text) <= MOST_SHOWN else "..."

    def _fail(self, node: ast.expr, problem: str) -> NoReturn:
        self._statement.fail(problem, node.col_offset)


def _tables(node: Expression) -> int:
    """Say how many entries an index is read by, one within the other."""
    return isinstance(node, Read) + max(map(_tables, node.children), default=0)


def parts(index: ast.expr) -> list[ast.expr]:
    """List the expressions between brackets, divided by commas."""
    return index.elts if isinstance(index, ast.Tuple) else [index]


def _over(index: ast.expr) -> tuple[list[ast.expr], ast.expr | None]:
    """Return the axes between a reducer's brackets, and the condition behind ``:``, if any."""
    found = parts(index)
    match found[-1:]:
        case [ast.Slice(lower=ast.expr() as axis, upper=ast.expr() as condition, step=None)]:
            return [*found[:-1], axis], condition
    return found, None


def axis_names(
    statement: Statement, nodes: Sequence[ast.expr], known: Mapping[str, int]
) -> tuple[str, ...]:
    """Return the names of different axes, each of which has an extent."""
    found: list[str] = []
    for node in nodes:
        text = statement.text[node.col_offset : node.end_col_offset]
        if not isinstance(node, ast.Name) or node.id not in known:
            allowed = ", ".join(known) or "axes with an extent, such as i=4; none is given"
            if known and isinstance(node, ast.Name):
                allowed += f"; or give it an extent, such as {node.id}=8"
            statement.fail(f"{shown(text)} is no axis; allowed: {allowed}", node.col_offset)
        if node.id in found:
            statement.fail(f"axis {node.id!r} is repeated; allowed: once", node.col_offset)
        found.append(node.id)
    return tuple(found)
