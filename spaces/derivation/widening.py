"""Programs whose arrays of few bits are converted apart, before and after everything else.

Kernels that multiply fast may not read what an operand holds, or round to what an output does. The
conversions are maps, which take little beside a product.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read

WIDE = ("float32", "tfloat32")
"""Dtypes that are not converted."""


def widened(program: Program) -> tuple[Program, list[str], list[str]]:
    """Add to a program a stage for each narrow operand, which reads it unchanged, and one for each
    narrow output, which alone writes it. Returns the program, the names of the former stages, and
    the names that the latter read.
    """
    names = {*program.operand, *program.stage}
    reads = {r.name for s in program.stages for r in s.body.value_reads}
    indices = {r.name for s in program.stages for r in _index_reads(s.body)}
    indices |= {r.name for c in program.conditions for r in c.reads}
    converted = {
        operand.name: _fresh(operand.name, names)
        for operand in program.operands
        if _is_narrow(operand.dtype) and operand.name in reads - indices
    }
    axes = {name: _axes(program.operand[name].shape, name) for name in converted}
    made = {o.name: _fresh(o.name, names) for o in program.outputs if o.dtype not in WIDE}
    renamed = converted | made
    stages = (
        *(
            Stage(converted[name], own, None, (), Read(name, tuple(map(AxisValue, own))))
            for name, own in axes.items()
        ),
        *(
            replace(s, name=renamed.get(s.name, s.name), body=_renamed(s.body, renamed))
            for s in program.stages
        ),
        *(
            Stage(name, own, None, (), Read(wide, tuple(map(AxisValue, own))))
            for name, wide in made.items()
            for own in [program.stage[name].axes]
        ),
    )
    extents = {
        axis: extent
        for name, own in axes.items()
        for axis, extent in zip(own, program.operand[name].shape, strict=True)
    }
    whole = replace(program, extents=(*program.extents, *extents.items()), stages=stages)
    return whole, list(converted.values()), list(made.values())


def _is_narrow(kind: str) -> bool:
    return kind in ("int8", "uint8", "bool") or kind.startswith("float8") or kind == "float16"


def _axes(shape: tuple[int, ...], name: str) -> tuple[str, ...]:
    return tuple(f"{name}_axis{number}" for number in range(len(shape)))


def _fresh(name: str, taken: set[str]) -> str:
    wide = f"{name}_wide"
    while wide in taken:
        wide += "_"
    taken.add(wide)
    return wide


def _index_reads(node: Expression) -> list[Read]:
    return [inner for read in node.reads for index in read.indices for inner in index.reads]


def _renamed(node: Expression, names: Mapping[str, str]) -> Expression:
    children = tuple(_renamed(child, names) for child in node.children)
    node = node if children == node.children else node.with_children(children)
    return replace(node, name=names.get(node.name, node.name)) if isinstance(node, Read) else node
