"""Count the work of a program: floating-point operations as the field counts them, operations by
functional unit, and the least bytes that move.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import cache, lru_cache, partial
from math import prod

from tilewright.spaces.derivation.algebra import constant, factors
from tilewright.spaces.derivation.domain import needed, points
from tilewright.spaces.derivation.literals import is_place
from tilewright.spaces.derivation.recurrent.view import Recurrence, cached_recurrence
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.prefixes import axes_of_points
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
    Select,
)

PLAIN = frozenset(name for name, function in FUNCTIONS.items() if function.plain)
"""Functions that processors have an instruction for; all others take several."""


@dataclass(frozen=True)
class Work:
    """Numbers of operations, without terms that a condition leaves out, and bytes.

    ``flops`` are two for each term of a sum of products, and what kernels are compared by;
    ``arithmetic`` all other additions, comparisons and the like; ``special`` calls of ``exp`` and
    its kind. ``bytes`` move if each element of an operand that is read comes once, and each output
    is written once.
    """

    flops: int
    arithmetic: int
    special: int
    bytes: int


def work(program: Program) -> Work:
    """Return the work of a program."""
    carried = cached_recurrence(program)
    stages = _stages_work(program, program.stages if carried is None else carried.others)
    if carried is not None:
        stages.append(_carried_work(carried))
    flops, arithmetic, special = (sum(column) for column in zip(*stages, strict=True))
    return Work(flops, arithmetic, special, least_bytes(program))


@lru_cache(maxsize=64)
def flops_of_pairs(program: Program) -> int:
    """Return the FLOPs of a program without a state: all stages are computed, pairs of positions
    of a recurrence among them."""
    return sum(flops for flops, _, _ in _stages_work(program, program.stages))


def _stages_work(program: Program, stages: Iterable[Stage]) -> list[tuple[int, int, int]]:
    where = needed(program)
    counted = cache(partial(points, program))
    return [
        _stage_work(program, s, frozenset((*where[s.name], *program.bounding(s))), counted)
        for s in stages
    ]


def _carried_work(view: Recurrence) -> tuple[int, int, int]:
    """Return the FLOPs, other operations and calls of a state: each of its elements is added to,
    and read, at each position, and decays."""
    passed = view.extent(*view.rows, view.position, *view.inner, view.lane)
    if view.decay is None:
        return 4 * passed, 0, 0
    return 4 * passed, passed, view.extent(*view.decay.axes)


def _stage_work(
    program: Program, stage: Stage, conditions: frozenset[Comparison], counted: Callable[..., int]
) -> tuple[int, int, int]:
    """Return the FLOPs, other operations and calls of a stage where the conditions hold.
    ``counted`` gives the points of a set of axes at which they do."""

    def times(axes: frozenset[str]) -> int:
        return counted(axes, conditions)

    product = _factors_of_sum(stage)
    terms = times(frozenset(axes_of_points(program, stage)))
    flops = arithmetic = special = 0
    if len(product) > 1:
        flops, arithmetic = 2 * terms, (len(product) - 2) * terms
    elif stage.reducer:
        arithmetic = terms
    for node in _operations(product):
        if isinstance(node, Call) and node.function not in PLAIN:
            special += times(node.axes)
        else:
            arithmetic += times(node.axes)
    return flops, arithmetic, special


def least_bytes(program: Program) -> int:
    """Return the bytes of all outputs and of what is read of all operands. Of a table that is
    gathered from, no more is read than the points at which it is."""
    total = sum(output.bytes for output in program.outputs)
    for operand in program.operands:
        reads = {
            read
            for body in (*(s.body for s in program.stages), *program.conditions)
            for read in body.reads
            if read.name == operand.name
        }
        touched = sum(prod(program.shape(tuple(read.axes))) for read in reads)
        total += operand.bytes_of(min(operand.size, touched))
    return total


def _factors_of_sum(stage: Stage) -> tuple[Expression, ...]:
    """List the factors of a sum's terms without constants; for any other stage, its body."""
    if stage.reducer != "sum":
        return (stage.body,)
    found = tuple(f for f in factors(stage.body) if constant(f) is None)
    return found if len(found) > 1 else (stage.body,)


def _operations(expressions: tuple[Expression, ...]) -> Iterator[Expression]:
    """Yield all nodes that compute, those within indices left out; equal ones once."""
    seen: set[Expression] = set()
    todo = list(expressions)
    while todo:
        node = todo.pop()
        if isinstance(node, Read | AxisValue | Number) or node in seen:
            continue
        seen.add(node)
        if isinstance(node, Select) and is_place(node.condition):
            todo += (node.then, node.otherwise)  # decided when kernels are made
            continue
        todo += node.children
        if isinstance(node, Binary | Call | Comparison | Negation | Select):
            yield node
