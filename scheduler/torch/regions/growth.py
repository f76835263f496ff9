"""Grow regions along what reads their nodes, and to what they read."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from math import prod

from torch import fx

from tilewright.scheduler.torch.regions.outputs import gives_several
from tilewright.scheduler.torch.translation.hiding import compares
from tilewright.scheduler.torch.translation.masks import band_of, mask_of
from tilewright.scheduler.torch.translation.nodes import (
    fake,
    has_plain_shape,
    name_of,
    shape,
    sources_of,
)
from tilewright.scheduler.torch.translation.products import factors_of
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import kind_of
from tilewright.scheduler.torch.translation.views import is_free

AFTER_PRODUCT = (Kind.POINTWISE, Kind.VIEW, Kind.RESULT)
MOST_LENGTHS = 4096
"""The number of lengths in one array, at most."""
AFTER_REDUCTION = (*AFTER_PRODUCT, Kind.REDUCTION)


def grown(
    anchor: fx.Node,
    below: Collection[fx.Node],
    order: Mapping[fx.Node, int],
    taken: Collection[fx.Node],
) -> set[fx.Node]:
    """Return the anchor, and the nodes ``below`` it that read nothing else that depends on it. A
    second product of the same left factor that meets the first one, as a gate does, is taken
    along."""
    inside = {anchor}
    allowed = AFTER_PRODUCT if kind_of(anchor) is Kind.PRODUCT else AFTER_REDUCTION
    while True:
        readers = {user for node in inside for user in node.users} - inside
        for reader in sorted(readers, key=order.__getitem__):
            if reader in taken or kind_of(reader) not in allowed:
                continue
            outer = [source for source in reader.all_input_nodes if source not in inside]
            if any(source in below for source in outer):
                continue
            inside |= {reader, *_gates(anchor, outer, taken)}
            break
        else:
            return inside


def _gates(anchor: fx.Node, outer: Collection[fx.Node], taken: Collection[fx.Node]) -> set[fx.Node]:
    """Return the nodes of products of the same left factor that lead to these nodes alone."""
    if name_of(anchor) != "mm":
        return set()
    found: set[fx.Node] = set()
    for source in outer:
        chain = _single_chain(source, taken)
        products = [node for node in chain if kind_of(node) is Kind.PRODUCT]
        if len(products) == 1 and _left(products[0]) is _left(anchor):
            found |= chain
    return found


def _single_chain(node: fx.Node, taken: Collection[fx.Node]) -> set[fx.Node]:
    """Return the nodes back to products that nothing else reads; none if one of these is taken."""
    chain, waiting = set[fx.Node](), [node]
    while waiting:
        each, kind = waiting[-1], kind_of(waiting.pop())
        if each in chain or kind not in (Kind.PRODUCT, *AFTER_PRODUCT):
            continue
        if each in taken or len(each.users) > 1:
            if kind is Kind.PRODUCT:
                return set()
            continue
        chain.add(each)
        if kind is not Kind.PRODUCT:
            waiting += each.all_input_nodes
    return chain


def _left(product: fx.Node) -> fx.Node | None:
    """Return the left factor, views of it seen through."""
    if name_of(product) not in ("mm", "addmm"):
        return None
    node = factors_of(product)[0]
    while kind_of(node) is Kind.VIEW:
        node = node.all_input_nodes[0]
    return node


def with_producers(inside: set[fx.Node], taken: Collection[fx.Node]) -> set[fx.Node]:
    """Return the same nodes with those before them that nothing else reads, and that are cheap."""
    while True:
        more = {
            source
            for node in inside
            for source in node.all_input_nodes
            if source not in inside
            and source not in taken
            and kind_of(source) in (Kind.POINTWISE, Kind.VIEW)
            and set(source.users) <= inside
        }
        if not more:
            return inside
        inside = inside | more


def with_results(nodes: set[fx.Node], inside: Collection[fx.Node]) -> set[fx.Node]:
    """Return the same nodes with all of ``inside`` that are results of one that gives several."""
    several = [node for node in nodes if gives_several(node)]
    return nodes.union(user for node in several for user in node.users if user in inside)


def with_masks(nodes: set[fx.Node]) -> list[set[fx.Node]]:
    """Return the same nodes with all that computes the masks of attention, where these are bands;
    before these, if there are other masks, with those that whole numbers alone decide, such as
    lengths."""
    masks = [mask_of(node) for node in nodes if kind_of(node) is Kind.PRODUCT]
    found = [mask for mask in masks if mask is not None]
    bands = nodes.union(*(sources_of(mask) for mask in found if band_of(mask) is not None))
    lengths = [_computed(mask) for mask in found if mask not in bands and _by_lengths(mask)]
    return [bands.union(*lengths), bands] if lengths else [bands]


def _computed(mask: fx.Node) -> set[fx.Node]:
    return {node for node in sources_of(mask) if node.op == "call_function"}


def _by_lengths(mask: fx.Node) -> bool:
    """Tell whether comparisons with few whole numbers among the inputs decide a mask."""
    nodes = sources_of(mask)
    inputs = [node for node in nodes if node.op != "call_function"]
    translated = (kind_of(node) in (Kind.POINTWISE, Kind.VIEW) for node in nodes.difference(inputs))
    return bool(inputs) and all(map(_are_lengths, inputs)) and all(translated) and compares(mask)


def _are_lengths(node: fx.Node) -> bool:
    whole = has_plain_shape(node) and not fake(node).dtype.is_floating_point
    return whole and prod(shape(node)) <= MOST_LENGTHS


def behind(nodes: set[fx.Node]) -> set[fx.Node]:
    """Return the same nodes with the free views that they read."""
    while True:
        read = {source for node in nodes for source in node.all_input_nodes} - nodes
        views = {node for node in read if node.op == "call_function" and is_free(node)}
        if not views:
            return nodes
        nodes = nodes | views
