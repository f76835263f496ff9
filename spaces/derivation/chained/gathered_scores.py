"""One score of each row, read by its place, as a sum over all of which one counts.

``z[i, l[i]]`` is ``sum[j](select(j == l[i], z[i, j], 0))``: so a chain that reads it, such as a
loss over a vocabulary, needs no array of scores.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Comparison, Expression, Number, Read, Select


def with_gathered_scores(program: Program, product: Stage) -> Program:
    """Return the program with such sums over the last axis of ``product`` in the place of such
    reads, in maps too; itself where conditions bound that axis, for they would bound the sums."""
    *rows, last = product.axes
    if any(last in condition.axes for condition in program.conditions):
        return program
    sums: dict[Read, Stage] = {}

    def replaced(node: Expression) -> Expression:
        if not isinstance(node, Read):
            return node.with_children(tuple(map(replaced, node.children)))
        if not _picks(node, product):
            return node
        if node not in sums:
            own = Read(product.name, tuple(map(AxisValue, product.axes)))
            chosen = Comparison("==", AxisValue(last), node.indices[-1])
            body = Select(chosen, own, Number(0.0))
            name = _unused(f"{product.name}_at", program, len(sums))
            sums[node] = Stage(name, tuple(rows), "sum", (last,), body)
        return Read(sums[node].name, node.indices[:-1])

    stages: list[Stage] = []
    for stage in program.stages:
        known = len(sums)
        body = inlined(program, stage.body, lambda _: True)
        picking = any(_picks(read, product) for read in body.reads)
        body = replaced(body) if picking else stage.body
        stages += [*list(sums.values())[known:], replace(stage, body=body)]
    return replace(program, stages=tuple(stages)) if sums else program


def _picks(read: Read, product: Stage) -> bool:
    """Tell whether a read takes one element of its own row of the product, at a place that depends
    on the row alone.
    """
    *own, _ = map(AxisValue, product.axes)
    if read.name != product.name or read.outside is not None or read.indices[:-1] != tuple(own):
        return False
    return read.indices[-1].axes <= set(product.axes[:-1])


def _unused(name: str, program: Program, number: int) -> str:
    taken = {*program.operand, *program.stage, *program.extent}
    name = f"{name}{number or ''}"
    while name in taken:
        name += "_"
    return name
