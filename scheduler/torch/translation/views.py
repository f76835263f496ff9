"""Rules of views: each says which element of its argument an element is."""

from __future__ import annotations

from typing import Any

from torch import fx

from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.index import Index, Indices, merged, reshaped, split
from tilewright.scheduler.torch.translation.nodes import (
    arguments,
    dimension,
    dimensions,
    fake,
    has_plain_shape,
    name_of,
    shape,
)
from tilewright.scheduler.torch.translation.rules import Source, pieces, view

Given = dict[str, Any]


def _source(given: Given) -> fx.Node:
    found = given.get("self", given.get("a"))
    assert isinstance(found, fx.Node)
    return found


@view("view", "reshape", "_unsafe_view")
def _view(node: fx.Node, given: Given, indices: Indices) -> Source:
    source = _source(given)
    if fake(source).dtype != fake(node).dtype:
        raise Gap("the bits of another dtype")
    return source, reshaped(indices, shape(node), shape(source))


@view("clone", "alias", "detach", "lift_fresh_copy")
def _same(node: fx.Node, given: Given, indices: Indices) -> Source:
    return _source(given), list(indices)


@view("permute")
def _permute(node: fx.Node, given: Given, indices: Indices) -> Source:
    source, found = _source(given), [Index()] * len(indices)
    for index, place in zip(indices, dimensions(given["dims"], len(indices)), strict=True):
        found[place] = index
    return source, found


@view("transpose", "t")
def _transpose(node: fx.Node, given: Given, indices: Indices) -> Source:
    found, rank = list(indices), len(indices)
    if rank > 1:
        one, other = dimension(given.get("dim0", 0), rank), dimension(given.get("dim1", 1), rank)
        found[one], found[other] = found[other], found[one]
    return _source(given), found


@view("expand")
def _expand(node: fx.Node, given: Given, indices: Indices) -> Source:
    source = _source(given)
    own = shape(source)
    part = indices[len(indices) - len(own) :]
    return source, [Index() if e == 1 else i for i, e in zip(part, own, strict=True)]


@view("unsqueeze")
def _unsqueeze(node: fx.Node, given: Given, indices: Indices) -> Source:
    place = dimension(given["dim"], len(indices))
    return _source(given), [*indices[:place], *indices[place + 1 :]]


@view("squeeze")
def _squeeze(node: fx.Node, given: Given, indices: Indices) -> Source:
    source = _source(given)
    own = shape(source)
    asked = dimensions(given.get("dim", given.get("dimensions")), len(own))
    remaining = iter(indices)
    gone = [place for place in asked if own[place] == 1]
    return source, [Index() if p in gone else next(remaining) for p in range(len(own))]


@view("select")
def _select(node: fx.Node, given: Given, indices: Indices) -> Source:
    source = _source(given)
    own = shape(source)
    place = dimension(given["dim"], len(own))
    index = Index((), given["index"] % own[place])
    return source, [*indices[:place], index, *indices[place:]]


@view("slice")
def _slice(node: fx.Node, given: Given, indices: Indices) -> Source:
    source = _source(given)
    own = shape(source)
    place, start = dimension(given["dim"], len(own)), given["start"] or 0
    first = max(start + own[place], 0) if start < 0 else min(start, own[place])
    found = list(indices)
    found[place] = indices[place] * given["step"] + first
    return source, found


@view("as_strided")
def _as_strided(node: fx.Node, given: Given, indices: Indices) -> Source:
    source = _source(given)
    if not fake(source).is_contiguous() or fake(source).storage_offset():
        raise Gap("as_strided of a view")
    number = Index((), given["storage_offset"] or 0)
    for index, stride in zip(indices, given["stride"], strict=True):
        number = number + index * stride
    return source, split(number, shape(source))


@view("flip", "rev")
def _flip(node: fx.Node, given: Given, indices: Indices) -> Source:
    own = shape(node)
    turned = dimensions(given["dims"], len(own))
    return _source(given), [
        index * -1 + (own[place] - 1) if place in turned else index
        for place, index in enumerate(indices)
    ]


@view("repeat")
def _repeat(node: fx.Node, given: Given, indices: Indices) -> Source:
    source = _source(given)
    own = shape(source)
    part = indices[len(indices) - len(own) :]
    return source, [index % extent for index, extent in zip(part, own, strict=True)]


@view("roll")
def _roll(node: fx.Node, given: Given, indices: Indices) -> Source:
    source = _source(given)
    own = shape(source)
    if not given["dims"]:
        number = merged(indices, own) + -given["shifts"][0]
        total = 1
        for extent in own:
            total *= extent
        return source, split(number % total, own)
    found = list(indices)
    for shift, place in zip(given["shifts"], dimensions(given["dims"], len(own)), strict=True):
        found[place] = (found[place] + -shift) % own[place]
    return source, found


@view("diagonal")
def _diagonal(node: fx.Node, given: Given, indices: Indices) -> Source:
    *found, along = indices
    rank, offset = len(shape(_source(given))), given["offset"]
    places = {dimension(given["dim1"], rank): -offset, dimension(given["dim2"], rank): offset}
    for place in sorted(places):
        found.insert(place, along + max(places[place], 0))
    return _source(given), found


@view("unfold")
def _unfold(node: fx.Node, given: Given, indices: Indices) -> Source:
    *found, inner = indices
    place = dimension(given["dimension"], len(found))
    found[place] = found[place] * given["step"] + inner
    return _source(given), found


@pieces("split", "split_with_sizes")
def _split(node: fx.Node, number: int, indices: Indices) -> Source:
    given = arguments(node)
    source = _source(given)
    size = given["split_size"] if "split_size" in given else given["split_sizes"]
    first = number * size if isinstance(size, int) else sum(size[:number])
    place = dimension(given["dim"], len(indices))
    found = list(indices)
    found[place] = indices[place] + first
    return source, found


@pieces("unbind")
def _unbind(node: fx.Node, number: int, indices: Indices) -> Source:
    given = arguments(node)
    place = dimension(given["dim"], len(indices) + 1)
    return _source(given), [*indices[:place], Index((), number), *indices[place:]]


FREE = {
    "permute", "transpose", "t", "expand", "unsqueeze", "squeeze", "slice", "select", "alias",
    "detach", "split", "split_with_sizes", "unbind",
}  # fmt: skip
"""The views that move nothing, and leave each dimension whole or cut it."""


def is_free(node: fx.Node) -> bool:
    """Tell whether a view moves nothing, so that a kernel may read what is behind it instead."""
    if not has_plain_shape(node) or not all(map(has_plain_shape, node.all_input_nodes)):
        return False
    name = name_of(node)
    if name == "getitem":
        producer = node.args[0]
        return isinstance(producer, fx.Node) and name_of(producer) in FREE
    if name in ("view", "reshape", "_unsafe_view", "clone"):
        source = node.args[0]
        assert isinstance(source, fx.Node)
        return _without_ones(source) == _without_ones(node) or _repeats(source)
    return name in FREE


def _without_ones(node: fx.Node) -> list[int]:
    return [extent for extent in shape(node) if extent != 1]


def _repeats(node: fx.Node) -> bool:
    """Tell whether a copy only spells out what ``expand`` repeats."""
    while name_of(node) in ("clone", "view", "_unsafe_view", "reshape"):
        node = node.args[0]
    return name_of(node) == "expand"


def moves_nothing(node: fx.Node) -> bool:
    """Tell whether torch gives a node's tensor without touching an element of it."""
    name = name_of(node)
    if name in FREE or name == "getitem":
        return True
    if name == "inductor_force_stride_order":
        return fake(node).stride() == fake(node.all_input_nodes[0]).stride()
    if name not in ("view", "reshape", "_unsafe_view"):
        return False
    source = node.args[0]
    assert isinstance(source, fx.Node)
    if not has_plain_shape(source) or not has_plain_shape(node):
        return True  # a view of unknown extents; it is no work of a kernel
    try:
        fake(source).view(shape(node))
    except (RuntimeError, ValueError):  # its elements are not evenly apart then
        return False
    return True
