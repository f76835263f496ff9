"""Shapes in which a region sees its tensors: those of the views that it reduces.

Group normalisation reduces ``[n, groups, channels, pixels]`` and writes ``[n, c, h, w]``, which are
the same elements in the same order. Written in the shape that is reduced, its result has the axes
of its statistics, as that of layer normalisation has.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping

from torch import fx

from tilewright.scheduler.torch.translation.nodes import fake, has_plain_shape, name_of, shape
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import rule_of

VIEWS = ("view", "reshape", "_unsafe_view")


def grids(nodes: Collection[fx.Node]) -> Mapping[tuple[int, ...], fx.Node]:
    """Map the shapes of tensors to the views of these that are reduced; a shape that is viewed in
    several ways is left out."""
    found: dict[tuple[int, ...], fx.Node] = {}
    for node in nodes:
        rule = rule_of(node)
        if rule is None or rule.kind is not Kind.REDUCTION:
            continue
        for view in node.all_input_nodes:
            if name_of(view) in VIEWS and view in nodes and _is_another_shape(view):
                own = tuple(shape(view.all_input_nodes[0]))
                if shape(found.setdefault(own, view)) != shape(view):
                    return {}
    return found


def grid_of(node: fx.Node, known: Mapping[tuple[int, ...], fx.Node]) -> fx.Node | None:
    """Return the view whose shape a node is written in, if it is another one than its own."""
    rule = rule_of(node)
    if not known or rule is None or rule.kind is not Kind.POINTWISE:
        return None
    return known.get(tuple(shape(node))) if fake(node).is_contiguous() else None


def _is_another_shape(view: fx.Node) -> bool:
    source = view.all_input_nodes[0]
    return has_plain_shape(source) and has_plain_shape(view) and shape(source) != shape(view)
