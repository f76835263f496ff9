"""The roles of axes in a sum of products: batch, row, column or depth, several of each.

    stage[batch, rows, columns] =
        leaving * sum[depth](left[batch, rows, depth] * right[batch, columns, depth])

Roles follow from which axes each factor reads: of the axes that are kept, rows are read by the left
factor only, columns by the right one only, and a batch by both. All axes that are summed over are
depth. A convolution is this, its window part of the depth; so are grouped heads and experts, whose
shared axes split (:mod:`spaces.derivation.products.splitting`). A factor may be any expression:
what it is made of is computed where its operands are loaded
(:mod:`spaces.derivation.products.prologue`).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.derivation.algebra import factors, product
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.products.splitting import Indexing, Part, indexing
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import Comparison, Expression, Read

ROLES = ("batch", "rows", "columns", "depth")


@dataclass(frozen=True)
class Roles:
    """A stage that is a sum of products of two factors, with the roles of its axes.

    Parts of a role stand in the order of the array that the stage becomes, the fastest last;
    the fastest part of that array is a column if one factor alone reads it. ``leaving`` is the
    product of the factors that no axis of the depth changes: it multiplies the finished sum.
    ``conditions`` bound the sum.
    """

    stage: Stage
    indexing: Indexing
    batch: tuple[Part, ...]
    rows: tuple[Part, ...]
    columns: tuple[Part, ...]
    depth: tuple[Part, ...]
    left: Expression
    right: Expression
    leaving: Expression
    conditions: tuple[Comparison, ...]

    def role(self, name: str) -> tuple[str, ...]:
        """Return the names of the parts of one of :data:`ROLES`."""
        parts: tuple[Part, ...] = getattr(self, name)
        return tuple(part.name for part in parts)


@dataclass(frozen=True)
class Side:
    """The factors of a sum of products that make up one of two, and all axes that they read."""

    reads: frozenset[str]
    factors: tuple[Expression, ...]


def roles_of(program: Program, stage: Stage) -> Roles | str:
    """The roles of a stage's axes, or why it is no sum of products of two factors, in words."""
    if stage.reducer != "sum":
        kind = f"reduces by {stage.reducer}" if stage.reducer else "is a map"
        return f"{stage.name} {kind}, not a sum"
    body = inlined(program, stage.body, lambda other: True)
    parts = indexing(program, body)
    depth = frozenset().union(*(parts.splits[axis].index.names for axis in stage.over))
    summed: list[Expression] = []
    leaving: list[Expression] = []
    for factor in factors(body):
        (leaving if depth.isdisjoint(parts.reads(factor)) else summed).append(factor)
    sides = sides_of([(parts.reads(factor), factor) for factor in summed])
    if isinstance(sides, str):
        return f"{stage.name} {sides}"
    return _contraction(program, stage, parts, sides, product(leaving))


def dtype_beside(program: Program, factor: Expression) -> str | None:
    """Return the dtype of a factor that is an operand of 16 bits: what tensor cores multiply it
    with has the same. None for any other factor."""
    operand = program.operand.get(factor.name) if isinstance(factor, Read) else None
    return operand.dtype if operand is not None and operand.element.bits == 16 else None


def sides_of(summed: Sequence[tuple[frozenset[str], Expression]]) -> tuple[Side, Side] | str:
    """Return the factors by the axes that they read: two sets, and smaller ones that join one of
    the two."""
    sets = list(dict.fromkeys(reads for reads, _ in summed))
    largest = [reads for reads in sets if not any(reads < other for other in sets)]
    if len(largest) > 2:
        return f"is a sum of products of {len(largest)} factors of different axes, not of two"
    if len(largest) == 1:
        largest += sorted((reads for reads in sets if reads not in largest), key=len)[-1:]
    if len(largest) < 2:
        return "is a sum of one factor, or of several of the same axes, not of products of two"
    members: tuple[list[Expression], list[Expression]] = ([], [])
    for reads, factor in summed:
        members[0 if reads <= largest[0] and reads != largest[1] else 1].append(factor)
    left, right = (Side(r, tuple(m)) for r, m in zip(largest, members, strict=True))
    return left, right


def _contraction(
    program: Program, stage: Stage, parts: Indexing, sides: tuple[Side, Side], leaving: Expression
) -> Roles:
    kept = [part for axis in _in_memory(program, stage) for part in parts.parts(axis)]
    left, right = sides
    if kept and kept[-1].name in left.reads - right.reads:
        left, right = right, left
    rows = tuple(p for p in kept if p.name in left.reads - right.reads)
    columns = tuple(p for p in kept if p.name in right.reads - left.reads)
    return Roles(
        stage=stage,
        indexing=parts,
        batch=tuple(p for p in kept if p not in rows and p not in columns),
        rows=rows,
        columns=columns,
        depth=tuple(part for axis in stage.over for part in parts.parts(axis)),
        left=product(left.factors),
        right=product(right.factors),
        leaving=leaving,
        conditions=program.bounding(stage),
    )


def _in_memory(program: Program, stage: Stage) -> tuple[str, ...]:
    """Return the stage's axes in the order of the output that is the stage, or follows from it
    element by element; else as they are written."""
    for output in program.outputs:
        axes = program.stage[output.name].axes
        if output.name == stage.name or sorted(axes) == sorted(stage.axes):
            return tuple(axes[dimension] for dimension in output.order)
    return stage.axes
