"""A program that is one product of activations and packed codes of weights.

    sums[rows, n] = sum[k](activation[rows, k] * (code(q[n, k]) - zero[n, k // group]) *
                                                 scale[n, k // group])

``code`` is the value of a code, or what a table ``t[q[n, k]]`` has for it. Zero points and scales
are any expressions that are the same within a group of the depth: within all of it, where they
belong to columns or to the whole matrix. The activation is any expression of rows and depth, and
what becomes of the finished sums is another program, of one map. Each row may choose its matrix, as
the tokens of experts do: ``q[e[row], n, k]``. If a sorted table tells, rows come in segments.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property, lru_cache
from math import prod

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.algebra import ZERO, factors, negated, product, times
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.products.splitting import Indexing, indexing
from tilewright.spaces.derivation.products.view import Segments
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Operand, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Read


@dataclass(frozen=True)
class CodedProduct:
    """The parts of such a program.

    ``rows`` are axes, the last one the fastest, and so is each of ``column`` and ``depth``.
    ``table`` is the operand that codes choose from, if they do. ``zero`` is subtracted from the
    values of codes, and ``scale`` multiplies them; None stands for what is not there. ``group``
    neighbours along the depth share both. ``matrix`` is the number of a row's matrix, where there
    are several. ``last`` is the program of what is written: it reads the sums as its operand
    ``sums``.
    """

    program: Program
    rows: tuple[str, ...]
    column: str
    depth: str
    codes: Operand
    activation: Expression
    table: Operand | None
    zero: Expression | None
    scale: Expression | None
    group: int
    matrix: Expression | None
    sums: Operand
    last: Program

    @property
    def row_count(self) -> int:
        """Rows of the product."""
        return prod(self.program.extent[axis] for axis in self.rows)

    @property
    def columns(self) -> int:
        """Columns of the product, which are rows of the codes."""
        return self.program.extent[self.column]

    @property
    def terms(self) -> int:
        """Terms of each sum."""
        return self.program.extent[self.depth]

    @property
    def differs_by_row(self) -> bool:
        """Tell whether rows differ in their matrices, zero points or scales."""
        shared = [each for each in (self.zero, self.scale) if each is not None]
        return self.matrix is not None or any(each.axes & set(self.rows) for each in shared)

    @cached_property
    def segments(self) -> Segments | None:
        """The rows of each matrix, if these are neighbours: a sorted table of all rows gives each
        its matrix, and through that its zero point and scale. None otherwise."""
        if not isinstance(self.matrix, Read) or len(self.rows) > 1:
            return None
        table, shared = self.program.operand[self.matrix.name], (self.zero, self.scale)
        if self.matrix.indices != (AxisValue(self.rows[0]),) or not (
            table.drawn is not None and table.drawn.sorted
        ):
            return None
        if any(self.rows[0] in _axes_beside(self.matrix, each) for each in shared if each):
            return None
        return Segments(table, self.codes.shape[0])

    @property
    def chosen_row(self) -> Read | None:
        """The entry of a table that chooses a row of the activations; None if these are read
        elsewhere."""
        match self.activation:
            case Read(_, (Read(_, (AxisValue(row),)) as chosen, AxisValue(self.depth))):
                return chosen if (row,) == self.rows else None
        return None

    def row_parts(self, most: int) -> tuple[int, ...]:
        """List the rows a tile may have: up to ``most``, as even as can be, each height once."""
        if self.differs_by_row:
            return (1,)
        parts = {ceil_div(self.row_count, tiles) for tiles in range(1, self.row_count + 1)}
        return tuple(sorted(n for n in parts if n <= most))


@lru_cache(maxsize=64)
def coded_product_of(program: Program) -> CodedProduct | str:
    """Return the product that a program is, or why it is none, in words."""
    try:
        return _coded_product(program)
    except InputError as reason:
        return str(reason)


def _coded_product(program: Program) -> CodedProduct:
    stage, codes = _stage(program), _codes(program)
    body = inlined(program, stage.body, lambda _: True)
    parts = indexing(program, body)
    matrix, column = _read(stage, body, codes)
    found = _factors(body, parts, codes, column, stage.over[0])
    table, zero = _code(found.code, codes)
    scale = product(found.scales) if found.scales else None
    rows = tuple(axis for axis in stage.axes if axis != column)
    sums = _sums(program, (*rows, column))
    return CodedProduct(
        program=program,
        rows=rows,
        column=column,
        depth=stage.over[0],
        codes=codes,
        activation=product(found.activations),
        table=None if table is None else program.operand[table],
        zero=zero,
        scale=scale,
        group=_group(parts, stage.over[0], [e for e in (zero, scale) if e is not None]),
        matrix=matrix,
        sums=sums,
        last=_last(program, stage, product(found.leaving), sums, (*rows, column)),
    )


def _codes(program: Program) -> Operand:
    coded = [operand for operand in program.operands if operand.coded]
    if len(coded) != 1:
        names = ", ".join(f"{o.name}{list(o.shape)}" for o in coded)
        raise InputError(f"packed codes: {names or 'none'}; needs one matrix of them")
    return coded[0]


def _stage(program: Program) -> Stage:
    """Return the only sum, over one axis."""
    sums = [stage for stage in program.stages if stage.reducer]
    if len(sums) != 1 or program.conditions or len(program.outputs) > 1:
        raise InputError("needs one sum of products, one output and no condition")
    if sums[0].reducer != "sum":
        raise InputError(f"{sums[0].name} reduces by {sums[0].reducer}, not a sum")
    if len(sums[0].over) != 1:
        raise InputError(f"{sums[0].name} reduces over {', '.join(sums[0].over)}; needs one axis")
    return sums[0]


def _read(stage: Stage, body: Expression, codes: Operand) -> tuple[Expression | None, str]:
    """Return the number of the matrix that a row reads, if there are several, and the columns."""
    reads = {read for read in body.reads if read.name == codes.name}
    (depth,) = stage.over
    for read in reads:
        *before, column, last = read.indices
        rows = all(index.axes <= set(stage.axes) for index in before)
        if len(reads) == 1 and isinstance(column, AxisValue) and last == AxisValue(depth) and rows:
            matrix = before[0] if before else None
            if column.name in stage.axes and (not matrix or column.name not in matrix.axes):
                return matrix, column.name
    several = "matrix, " if len(codes.shape) > 2 else ""
    found = " and ".join(sorted(map(str, reads)))
    raise InputError(f"{codes.name} is read as {found}; allowed: [{several}column, {depth}]")


@dataclass(frozen=True)
class _Factors:
    """The factors of a sum's terms, by what they read: the codes; the depth and the columns; the
    depth alone; neither."""

    code: Expression
    scales: list[Expression]
    activations: list[Expression]
    leaving: list[Expression]


def _factors(
    body: Expression, parts: Indexing, codes: Operand, column: str, depth: str
) -> _Factors:
    columns, depths = ({part.name for part in parts.parts(axis)} for axis in (column, depth))
    own, found = list[Expression](), _Factors(body, [], [], [])
    for factor in factors(body):
        reads = parts.reads(factor)
        if any(read.name == codes.name for read in factor.reads):
            own.append(factor)
        elif reads.isdisjoint(depths):
            found.leaving.append(factor)
        else:
            (found.activations if reads.isdisjoint(columns) else found.scales).append(factor)
    if len(own) != 1:
        raise InputError(f"{codes.name} is in {len(own)} factors; needs one")
    return replace(found, code=own[0])


def _code(node: Expression, codes: Operand) -> tuple[str | None, Expression | None]:
    """Return the name of the table that codes choose from, and what is subtracted of values."""
    match node:
        case Read(codes.name):
            return None, None
        case Read(name, (Read(codes.name),), None):
            return name, None
        case Binary("-" | "+" as operator, left, right) if codes.name not in _names(right):
            table, zero = _code(left, codes)
            if zero is None:
                return table, right if operator == "-" else negated(right)
    form = f"{codes.name}[...], or t[{codes.name}[...]], less a zero point"
    raise InputError(f"{node} is multiplied; needs {form}")


def _names(node: Expression) -> set[str]:
    return {read.name for read in node.reads}


def _axes_beside(read: Read, node: Expression) -> frozenset[str]:
    """Return the axes whose values occur elsewhere than in a read."""
    if node == read:
        return frozenset()
    own = node.axes if isinstance(node, AxisValue) else frozenset[str]()
    return own.union(*(_axes_beside(read, child) for child in node.children))


def _group(parts: Indexing, depth: str, shared: list[Expression]) -> int:
    """Return how many neighbours along the depth share zero points and scales."""
    split = parts.splits[depth]
    if split.uneven:
        raise InputError(
            f"groups of {split.parts[-1].extent} along {depth}; needs groups that divide it"
        )
    read = frozenset[str]().union(*(parts.reads(each) for each in shared))
    group = 1
    for part in reversed(split.parts):
        if part.name in read:
            break
        group *= part.extent
    if group == 1:
        raise InputError("zero points or scales differ at each of the depth; needs groups")
    return group


def _sums(program: Program, axes: tuple[str, ...]) -> Operand:
    """Return the finished sums as an array of rows."""
    taken = {*program.operand, *program.stage}
    name = next(n for n in ("sums", "sums_", "sums__") if n not in taken)
    shape = program.shape(axes)
    return Operand(name, "float32", shape, tuple(range(len(shape))))


def _last(
    program: Program, stage: Stage, leaving: Expression, sums: Operand, axes: tuple[str, ...]
) -> Program:
    """Return the program that makes the output of the finished sums."""
    first = {axis: AxisValue(axis) for axis in program.extent} | dict.fromkeys(stage.over, ZERO)
    summed = times(leaving.at(first), Read(sums.name, tuple(map(AxisValue, axes))))
    stages = tuple(
        Stage(each.name, each.axes, None, (), summed) if each is stage else each
        for each in program.stages
    )
    return replace(program, operands=(*program.operands, sums), stages=stages)
