"""A program that is one product of activations and packed codes of weights.

    sums[rows, n] = sum[k](activation[rows, k] * (code(q[n, k]) - zero[n, k // group]) *
                                                 scale[n, k // group])

``code`` is the value of a code, or what a table ``t[q[n, k]]`` has for it. Zero points and scales
are any expressions that are the same within a group of the depth: within all of it, where they
belong to columns or to the whole matrix. The activation is any expression of rows and depth, and
what becomes of the finished sums is another program, of one map.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

from tilewright.spaces.derivation.algebra import ZERO, factors, negated, product, times
from tilewright.spaces.derivation.products.roles import Roles, roles_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Operand, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Read


@dataclass(frozen=True)
class CodedProduct:
    """The parts of such a program.

    ``rows`` are axes, the last one the fastest, and so is each of ``column`` and ``depth``.
    ``table`` is the operand that codes choose from, if they do. ``zero`` is subtracted from the
    values of codes, and ``scale`` multiplies them; None stands for what is not there. ``group``
    neighbours along the depth share both. ``last`` is the program of what is written: it reads the
    sums as its operand ``sums``.
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


@lru_cache(maxsize=64)
def coded_product_of(program: Program) -> CodedProduct | str:
    """Return the product that a program is, or why it is none, in words."""
    try:
        return _coded_product(program)
    except InputError as reason:
        return str(reason)


def _coded_product(program: Program) -> CodedProduct:
    found = _roles(program)
    (codes,) = (operand for operand in program.operands if operand.coded)
    ((column,), (depth,)) = ({p.axis for p in found.columns}, set(found.stage.over))
    code, others = _factors(found, codes)
    table, zero = _code(code, codes)
    reads = [read for read in code.reads if read.name == codes.name]
    if any(read.indices != (AxisValue(column), AxisValue(depth)) for read in reads):
        allowed = f"{codes.name}[{column}, {depth}]"
        raise InputError(f"{codes.name} is read as {reads[0]}; allowed: {allowed}")
    scale = product(others) if others else None
    sums = _sums(program, found, column)
    return CodedProduct(
        program=program,
        rows=tuple(part.axis for part in found.rows),
        column=column,
        depth=depth,
        codes=codes,
        activation=found.left,
        table=None if table is None else program.operand[table],
        zero=zero,
        scale=scale,
        group=_group(found, [e for e in (zero, scale) if e is not None]),
        sums=sums,
        last=_last(program, found, sums),
    )


def _roles(program: Program) -> Roles:
    """Return the roles of the only sum, whose right factor has the codes."""
    sums = [stage for stage in program.stages if stage.reducer]
    coded = [operand for operand in program.operands if operand.coded]
    if len(coded) != 1 or len(coded[0].shape) != 2:
        names = ", ".join(f"{o.name}{list(o.shape)}" for o in coded)
        raise InputError(f"packed codes: {names or 'none'}; needs one matrix of them")
    if len(sums) != 1 or program.conditions or len(program.outputs) > 1:
        raise InputError("needs one sum of products, one output and no condition")
    found = roles_of(program, sums[0])
    if isinstance(found, str):
        raise InputError(found)
    name = coded[0].name
    if found.batch or len(found.columns) != 1 or len(found.stage.over) != 1:
        raise InputError(f"needs one axis of columns and one of the depth beside {name}")
    if any(read.name == name for side in (found.left, found.leaving) for read in side.reads):
        raise InputError(f"{name} is not read along the output's fastest axis")
    for axis, split in found.indexing.splits.items():
        if split.uneven:
            divisor = split.parts[-1].extent
            along = f"{axis}, which is {program.extent[axis]}"
            raise InputError(f"groups of {divisor} along {along}; needs a multiple")
    if len({part.axis for part in found.rows}) != len(found.rows):
        raise InputError("groups of rows; needs whole axes")
    return found


def _factors(found: Roles, codes: Operand) -> tuple[Expression, list[Expression]]:
    """Return the factor that has the codes, and the others on its side."""
    own: list[Expression] = []
    others: list[Expression] = []
    for factor in factors(found.right):
        (own if any(read.name == codes.name for read in factor.reads) else others).append(factor)
    if len(own) != 1:
        raise InputError(f"{codes.name} is in {len(own)} factors; needs one")
    return own[0], others


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


def _group(found: Roles, shared: list[Expression]) -> int:
    """Return how many neighbours along the depth share zero points and scales."""
    read = frozenset[str]().union(*(found.indexing.reads(each) for each in shared))
    group = 1
    for part in reversed(found.indexing.parts(found.stage.over[0])):
        if part.name in read:
            break
        group *= part.extent
    if group == 1:
        raise InputError("zero points or scales differ at each of the depth; needs groups")
    return group


def _sums(program: Program, found: Roles, column: str) -> Operand:
    """Return the finished sums as an array of rows."""
    taken = {*program.operand, *program.stage}
    name = next(n for n in ("sums", "sums_", "sums__") if n not in taken)
    axes = (*(part.axis for part in found.rows), column)
    shape = program.shape(axes)
    return Operand(name, "float32", shape, tuple(range(len(shape))))


def _last(program: Program, found: Roles, sums: Operand) -> Program:
    """Return the program that makes the output of the finished sums."""
    axes = (*(part.axis for part in found.rows), found.columns[0].axis)
    first = {axis: AxisValue(axis) for axis in program.extent} | dict.fromkeys(
        found.stage.over, ZERO
    )
    summed = times(found.leaving.at(first), Read(sums.name, tuple(map(AxisValue, axes))))
    stages = tuple(
        Stage(stage.name, stage.axes, None, (), summed) if stage is found.stage else stage
        for stage in program.stages
    )
    return replace(program, operands=(*program.operands, sums), stages=stages)
