"""Maps computed where they are read, so that a product sees what its factors are made of."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import Expression, Read

MAX_NODES = 300
"""Nodes of a body beyond which a map stays an array of its own: maps may double it each time."""


def inlined(program: Program, body: Expression, wanted: Callable[[Stage], bool]) -> Expression:
    """Return ``body`` with reads of ``wanted`` maps replaced by what the maps compute, maps of maps
    too.

    A read that may leave its map keeps it: beyond the borders there is nothing to compute.
    """
    maps = {s.name: s for s in program.stages if s.reducer is None and wanted(s)}
    if not maps:
        return body
    room = MAX_NODES

    def visit(node: Expression) -> Expression:
        nonlocal room
        if isinstance(node, Read) and node.outside is None and node.name in maps:
            stage = maps[node.name]
            size = sum(1 for _ in stage.body.walk())
            if size <= room:
                room -= size
                return visit(stage.body.at(dict(zip(stage.axes, node.indices, strict=True))))
        return node.with_children(tuple(map(visit, node.children)))

    return visit(body)
