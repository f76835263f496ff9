"""Programs, read from text by a whitelist; nothing in the text can run.

A program has a line for each stage, ``name[axes] = expression``, and lines that say more:

    axes r=4096, c=1024                      extents, unless the caller gives them
    x: bfloat16[r, c](order=(1, 0))          an array's dtype, shape, order, leading dimension
    t: int32[r](sorted < 8)                  and that its values are indices
    C: float32[2, 2] = {0, 1, -1, 0}         or what they are, for good
    z: complex64[r]                          pairs of real numbers, which z[r, 0], z[r, 1] are
    where j <= i                             what bounds all reductions over an axis it names
    y[i] = sum[j: j <= i](x[j])              what bounds this reduction alone
    -> y, mean                               the outputs; by default the last stage
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Mapping, Sequence

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.language.cycles import arranged
from tilewright.spaces.language.domains import Bounded, bounded
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.reading.declarations import Declaration, declaration
from tilewright.spaces.language.reading.expressions import (
    ExpressionReader,
    Names,
    axis_names,
    parts,
)
from tilewright.spaces.language.reading.inference import Arrays
from tilewright.spaces.language.reading.reductions import Lifter
from tilewright.spaces.language.reading.source import (
    MAX_LENGTH,
    NAME,
    NAMES,
    RESERVED,
    Statement,
    statements,
)
from tilewright.spaces.language.reading.validation import check
from tilewright.spaces.language.tree import Comparison
from tilewright.spaces.validation.checks import whole

MAX_EXTENT = 2**24
MAX_AXES = 32
MAX_STAGES = 128
MAX_CONDITIONS = 16


def program(text: str, /, *, dtype: str = "float32", **extents: int | str) -> Program:
    """Return the program that ``text`` spells, its axes as long as ``extents`` say.

    ``dtype`` is that of operands and outputs that no line declares; sums of float8 are written as
    float32, and whole numbers as int32. Raises :class:`InputError` for anything outside the
    language, with the line and the character, and for a program that has no meaning.
    """
    reader = _Reader(statements(text), extents)
    reader.read()
    made = reader.program(dtype)
    check(made)
    if len(str(made)) > MAX_LENGTH:
        length = len(str(made))
        raise InputError(f"written out, the program has {length} characters; allowed: {MAX_LENGTH}")
    return made


class _Reader:
    """Sorts the statements by kind, and reads each kind after those that it needs."""

    def __init__(self, found: Sequence[Statement], extents: Mapping[str, int | str]) -> None:
        self._wheres = [s for s in found if s.text.startswith("where ")]
        self._arrows = [s for s in found if s.text.startswith("->")]
        heads = [s for s in found if s.text.startswith("axes ")]
        special = {*self._wheres, *self._arrows, *heads}
        trees = [(s, s.tree()) for s in found if s not in special]
        self._declarations = [(s, t) for s, t in trees if isinstance(t, ast.AnnAssign)]
        definitions = [(s, t) for s, t in trees if not isinstance(t, ast.AnnAssign)]
        self._definitions = [(s, *_definition(s, t)) for s, t in definitions]
        self._names = Names(_extents(heads, extents), self._lines())
        self.declared: dict[str, Declaration] = {}
        self.conditions: list[Comparison] = []
        self.stages: list[Stage] = []
        self.domains: dict[str, tuple[Comparison, ...]] = {}

    def read(self) -> None:
        """Fill ``declared``, ``conditions`` and ``stages``."""
        for statement, tree in self._declarations:
            self._declare(declaration(statement, tree, self._names))
        for statement in self._wheres:
            self._bound(statement)
        for statement, name, axes, value in self._definitions:
            self._define(statement, name, axes, value)
        if not self.stages:
            raise InputError("the program has no stage; allowed: lines such as y[i] = 2 * x[i]")

    def program(self, dtype: str) -> Program:
        """Return the program of all that was read."""
        from tilewright.spaces.language.reading.pairs import in_parts  # by algebra of programs

        read = Bounded(self._names.axes, arranged(self.stages), tuple(self.conditions))
        made = bounded(read, self.domains, {*self._names.ranks, *(s.name for s in self.stages)})
        _check_count(made)
        named = self._outputs()
        made, declared = in_parts(made, self.declared, self._names.ranks)
        arrays = Arrays(made.extents, made.stages, made.conditions, declared, named, dtype)
        extents = tuple(made.extents.items())
        return Program(extents, arrays.operands, made.stages, made.conditions, arrays.outputs)

    def _lines(self) -> dict[str, int]:
        lines: dict[str, int] = {}
        for statement, name, _, _ in self._definitions:
            if name in lines:
                statement.fail(f"stage {name!r} is defined twice; line {lines[name]} defines it")
            lines[name] = statement.line
        return lines

    def _declare(self, declared: Declaration) -> None:
        name, statement = declared.name, declared.statement
        _check_name(statement, name, self._names)
        if name in self.declared:
            statement.fail(f"{name!r} is declared twice; allowed: once")
        if declared.drawn and name in self._names.lines:
            statement.fail(f"{name!r} is a stage; only operands are drawn")
        if declared.elements and name in self._names.lines:
            statement.fail(f"{name!r} is a stage; only operands are constants")
        if declared.drawn:
            self._names.indices.add(name)
        if declared.dtype == "bool":
            self._names.truths.add(name)
        if declared.shape is not None:
            self._names.ranks[name] = len(declared.shape)
        self.declared[name] = declared

    def _bound(self, statement: Statement) -> None:
        reader = ExpressionReader(statement, self._names)
        for tree in statement.expressions(len("where ")):
            for condition in reader.conditions(tree):
                reader.refuse_parts(tree, condition)
                self.conditions.append(condition)
        if len(self.conditions) > MAX_CONDITIONS:
            statement.fail(f"{len(self.conditions)} conditions; allowed: {MAX_CONDITIONS}")

    def _define(
        self, statement: Statement, name: str, nodes: Sequence[ast.expr], value: ast.expr
    ) -> None:
        _check_name(statement, name, self._names)
        axes = axis_names(statement, nodes, self._names.axes)
        if self._names.ranks.setdefault(name, len(axes)) != len(axes):
            known = self._names.ranks[name]
            statement.fail(f"{name!r} has {len(axes)} axes here, and {known} where it is declared")
        self._names.defining = name
        expression = ExpressionReader(statement, self._names).read(value)
        self._names.defining = ""
        taken = {*self._names.ranks, *self._names.lines, *self._names.axes, *self.declared}
        Lifter(self.conditions, self.stages, self.domains, taken).define(name, axes, expression)
        if len(self.stages) > MAX_STAGES:
            statement.fail(f"{len(self.stages)} stages; allowed: {MAX_STAGES}")
        self._names.defined.add(name)
        self._add_index(self.stages[-1])

    def _add_index(self, stage: Stage) -> None:
        if stage.reducer and REDUCERS[stage.reducer].argument:
            self._names.indices.add(stage.name)

    def _outputs(self) -> list[str]:
        if len(self._arrows) > 1:
            self._arrows[1].fail("outputs are named twice; allowed: one line -> y, z")
        return [name for s in self._arrows for name in self._named(s)] or [self.stages[-1].name]

    def _named(self, statement: Statement) -> Iterator[str]:
        seen: set[str] = set()
        for node in statement.expressions(len("->")):
            name = node.id if isinstance(node, ast.Name) else ""
            if name not in self._names.lines:
                known, found = ", ".join(self._names.lines), statement.text[node.col_offset :]
                statement.fail(f"{shown(found)} is no stage; allowed: {known}", node.col_offset)
            if name in seen:
                statement.fail(f"output {name!r} is named twice: outputs overlap", node.col_offset)
            seen.add(name)
            yield name


def _definition(statement: Statement, tree: ast.stmt) -> tuple[str, Sequence[ast.expr], ast.expr]:
    """Name, axes and value of a stage."""
    match tree:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, [], value
        case ast.Assign(targets=[ast.Subscript(value=ast.Name(id=name), slice=axes)], value=value):
            return name, parts(axes), value
    allowed = "name[axes] = expression, name: dtype[shape], axes a=1, where ..., -> names"
    statement.fail(f"not part of the language; allowed: {allowed}")


def _check_name(statement: Statement, name: str, names: Names) -> None:
    if not NAME.fullmatch(name) or name in RESERVED:
        statement.fail(f"bad name {shown(name)}; allowed: {NAMES}")
    if name in names.axes:
        statement.fail(f"{name!r} is an axis; an array needs another name")


def _extents(heads: Sequence[Statement], given: Mapping[str, int | str]) -> dict[str, int]:
    """Axis name to extent, from the lines ``axes a=1, b=2`` and from the caller."""
    extents: dict[str, int] = {}
    for statement in heads:
        for part in statement.text.removeprefix("axes ").split(","):
            name, _, value = (word.strip() for word in part.partition("="))
            if name in extents:
                statement.fail(f"axis {name!r} is given twice")
            extents[name] = _extent(name, value)
    for name, extent in given.items():
        if name in extents:
            raise InputError(f"axis {name!r} is given twice, in the text and beside it")
        extents[name] = _extent(name, extent)
    if len(extents) > MAX_AXES:
        raise InputError(f"{len(extents)} axes; allowed: {MAX_AXES}")
    return extents


def _check_count(made: Bounded) -> None:
    """Refuse too many conditions, or too many axes where reductions have axes of their own."""
    if len(made.conditions) > MAX_CONDITIONS:
        raise InputError(f"{len(made.conditions)} conditions; allowed: {MAX_CONDITIONS}")
    if len(made.extents) > MAX_AXES:
        problem = f"{len(made.extents)} axes, those of reductions with other conditions included"
        raise InputError(f"{problem}; allowed: {MAX_AXES}")


def _extent(name: str, value: object) -> int:
    if not NAME.fullmatch(name) or name in RESERVED:
        raise InputError(f"{shown(name)} is no name of an axis; allowed: a=1, b=2")
    if isinstance(value, str) and re.fullmatch(r"[0-9]{1,12}", value):
        value = int(value)
    return whole(name, value, 1, MAX_EXTENT)
