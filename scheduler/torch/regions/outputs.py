"""Outputs of regions: the nodes that are read elsewhere, which a kernel has to write."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from math import prod
from typing import Protocol

from torch import fx

from tilewright.scheduler.torch.translation.arrays import written
from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.nodes import (
    fake,
    has_plain_shape,
    has_tensor,
    name_of,
    reached,
    shape,
)
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import kind_of

MOST = 6
"""The number of outputs of a region, at most."""


class Placed(Protocol):
    """A region, as far as the order of kernels depends on it."""

    @property
    def outputs(self) -> tuple[fx.Node, ...]:
        """The nodes that its kernel writes."""

    @property
    def operands(self) -> tuple[fx.Node, ...]:
        """The nodes that its kernel reads."""


def outputs_of(
    nodes: Collection[fx.Node], own: Collection[fx.Node], order: Mapping[fx.Node, int]
) -> tuple[fx.Node, ...]:
    """Return the nodes that a kernel of ``nodes`` has to write (:func:`read_outside`), in the order
    of the graph. None if one of them is nothing that a kernel should write, or there are too
    many."""
    read = read_outside(nodes, own)
    if len(read) > MOST or not all(node in nodes and _may_be_written(node) for node in read):
        return ()
    return tuple(sorted(read, key=order.__getitem__))


def read_outside(nodes: Collection[fx.Node], own: Collection[fx.Node]) -> set[fx.Node]:
    """Return those of its ``own`` nodes that are read outside a region. What is behind views stands
    in their place."""
    return {
        _behind_views(node, nodes)
        for node in nodes
        if node in own and any(user not in nodes for user in node.users)
    }


def trimmed(nodes: set[fx.Node]) -> set[fx.Node]:
    """Return the same nodes without those at the ends that no kernel should write, such as views
    and truth values, and without what only these read."""
    while True:
        ends = {node for node in nodes if nodes.isdisjoint(node.users)}
        unwritten = {
            node for node in ends if kind_of(node) is Kind.VIEW or not _may_be_written(node)
        }
        if not unwritten:
            return nodes
        nodes = nodes - unwritten


def _behind_views(node: fx.Node, nodes: Collection[fx.Node]) -> fx.Node:
    while kind_of(node) is Kind.VIEW and node in nodes:
        node = node.all_input_nodes[0]
    return node


def _may_be_written(node: fx.Node) -> bool:
    """Tell whether a kernel should write a node. What widens a result is better done by its
    readers."""
    if not has_tensor(node) or gives_several(node) or _widens(node):
        return False
    try:
        written(node, "")
    except Gap:
        return False
    return True


def _widens(node: fx.Node) -> bool:
    """Tell whether a node only converts to a dtype of more bytes."""
    if name_of(node) not in ("convert_element_type", "_to_copy"):
        return False
    before, after = fake(node.all_input_nodes[0]).dtype, fake(node).dtype
    return before.itemsize < after.itemsize


def gives_several(node: fx.Node) -> bool:
    """Tell whether a node has several results."""
    return isinstance(node.meta.get("val"), tuple | list)


def shared_producer(
    inside: Collection[fx.Node], taken: Collection[fx.Node], order: Mapping[fx.Node, int]
) -> fx.Node | None:
    """Return the last pointwise node that a region reads, and others too, if it is as large as
    what the region computes: a residual, say, which the region's kernel may write as well."""
    sizes = [prod(shape(node)) for node in inside if has_plain_shape(node)]
    found = [
        source
        for node in inside
        for source in node.all_input_nodes
        if source not in inside
        and source not in taken
        and kind_of(source) is Kind.POINTWISE
        and has_plain_shape(source)
        and prod(shape(source)) == max(sizes)
        and _may_be_written(source)
    ]
    return max(found, key=order.__getitem__, default=None)


def closes_cycle(
    nodes: Collection[fx.Node], outputs: Sequence[fx.Node], regions: Sequence[Placed]
) -> bool:
    """Tell whether a kernel of ``nodes`` would wait for what reads its own outputs, perhaps by way
    of the kernels of other ``regions``."""
    several = [region for region in regions if len(region.outputs) > 1]

    def following(node: fx.Node) -> set[fx.Node]:
        others = (region.outputs for region in several if node in region.operands)
        return set(node.users).union(*others)

    start = {reader for node in outputs for reader in following(node) if reader not in nodes}
    return not reached(start, following).isdisjoint(nodes)
