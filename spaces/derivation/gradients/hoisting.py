"""Sums without the factors that no summed axis changes, and maps written into what reads them.

``sum[j](exp(s[i, j] - m[i]) / l[i] * v[j])`` is ``sum[j](exp(s[i, j] - m[i]) * v[j]) / l[i]``. The
derivative in ``l`` then is a sum over the few columns of the result, and not over all ``j``: this
is how the derivative of a softmax in attention becomes ``sum(dy * y)`` (Dao, FlashAttention-2,
2023, section 3.1.2), and that of any other quotient likewise.
"""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import replace

from tilewright.spaces.derivation.algebra import ONE, factors, product
from tilewright.spaces.derivation.gradients.totals import quotient
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.language.cycles import computed_of, in_states
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Binary, Expression, Read


def hoisted(program: Program, kept: Collection[str]) -> Program:
    """Return an equal program whose sums have no factor that leaves them, and which has no maps
    but those that are ``kept``, and states."""
    kept = {*kept, *in_states(program)}
    stages: list[Stage] = []
    for stage in program.stages:
        so_far = replace(program, stages=tuple(stages))
        body = inlined(so_far, stage.body, lambda each: each.name not in kept)
        stages += _apart(program, replace(stage, body=_plain(body)))
    needed = computed_of(stages, {*kept, *(output.name for output in program.outputs)})
    return replace(program, stages=tuple(s for s in stages if s.name in needed))


def _apart(program: Program, stage: Stage) -> list[Stage]:
    """Return a sum and the map that multiplies it by what leaves it; or the stage as it is."""
    if stage.reducer != "sum":
        return [stage]
    found = factors(stage.body)
    leaving = [f for f in found if f.axes.isdisjoint(stage.over) and _reads_stages(program, f)]
    staying = [f for f in found if f not in leaving]
    if not leaving or not staying:
        return [stage]
    name = inner_name(program, stage.name)
    inner = replace(stage, name=name, body=product(staying))
    read = Read(name, tuple(map(AxisValue, stage.axes)))
    return [inner, Stage(stage.name, stage.axes, None, (), quotient([*leaving, read]))]


def inner_name(program: Program, name: str) -> str:
    """Return a name for the sum inside a stage that no array and no axis has."""
    taken = {*program.stage, *program.operand, *program.extent}
    number, found = 1, f"{name}_inner"
    while found in taken:
        number += 1
        found = f"{name}_inner{number}"
    return found


def _reads_stages(program: Program, factor: Expression) -> bool:
    return any(read.name in program.stage for read in factor.value_reads)


def _plain(node: Expression) -> Expression:
    """Return an expression without quotients of indices by 1."""
    children = tuple(map(_plain, node.children))
    if isinstance(node, Binary) and node.operator == "//" and children[1] == ONE:
        return children[0]
    return node if children == node.children else node.with_children(children)
