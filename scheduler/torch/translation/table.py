"""Find the rule of a node; all families of rules are imported here."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial

from torch import fx

from tilewright.scheduler.torch.translation import (  # noqa: F401  # they register their rules
    attention,
    convolutions,
    gathers,
    pointwise,
    pools,
    products,
    reductions,
    views,
)
from tilewright.scheduler.torch.translation.axes import Dimension
from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.nodes import arguments, has_tensor, name_of, shape
from tilewright.scheduler.torch.translation.rules import RULES, Kind, Rule, Source


def rule_of(node: fx.Node) -> Rule | None:
    """Return the rule of a node; None where there is none."""
    if node.op != "call_function":
        return None
    name = name_of(node)
    return _result_of(node) if name == "getitem" else RULES.get(name)


def kind_of(node: fx.Node) -> Kind | None:
    """Return the kind of a node's rule."""
    found = rule_of(node)
    return None if found is None else found.kind


def _result_of(node: fx.Node) -> Rule | None:
    """Return the rule of one of several results, or of one of several views."""
    producer, number = node.args
    assert isinstance(producer, fx.Node)
    assert isinstance(number, int)
    rule = rule_of(producer)
    if rule is None:
        return None
    if rule.piece is not None:
        piece = rule.piece
        return Rule(Kind.VIEW, view=lambda _, given, indices: piece(producer, number, indices))
    if rule.result is None or number >= rule.results:
        return None
    return Rule(Kind.RESULT, ties=partial(_same, producer))


def _same(producer: fx.Node, node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    """A result has the dimensions that the first result has, whose tensor stands for the node."""
    for place in range(len(shape(node))):
        yield (node, place), (producer, place)


def ties_of(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    """Yield the pairs of dimensions that a node makes one loop."""
    rule = rule_of(node)
    if rule is None or not has_tensor(node):
        return
    if rule.ties is not None:
        yield from rule.ties(node)
    elif rule.view is not None:
        yield from _ties_of_view(node)
    elif rule.kind is Kind.POINTWISE:
        yield from _ties_of_map(node)


def seen_through(node: fx.Node, indices: Indices) -> Source:
    """Return the argument of a view, and where an element of the view is in it."""
    rule = rule_of(node)
    assert rule is not None
    assert rule.view is not None
    given = {} if name_of(node) == "getitem" else arguments(node)
    return rule.view(node, given, indices)


def _places(node: fx.Node) -> tuple[fx.Node, list[int | None]]:
    """Return the argument of a view, and for each of its dimensions that of the view which it
    is."""
    indices = [Index.of(f"#{place}", 0, extent - 1) for place, extent in enumerate(shape(node))]
    source, found = seen_through(node, indices)
    atoms = {index.atom: place for place, index in enumerate(indices) if index.atom}
    return source, [
        atoms.get(index.atom) if index.atom and index.atom.greatest == extent - 1 else None
        for index, extent in zip(found, shape(source), strict=True)
    ]


def _ties_of_view(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    """Yield the dimensions that a view leaves as they are."""
    source, places = _places(node)
    for place, own in enumerate(places):
        if own is not None:
            yield (node, own), (source, place)


def _ties_of_map(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    """Yield the dimensions of all arguments, counted from the last."""
    rank = len(shape(node))
    for source in node.all_input_nodes:
        own = len(shape(source)) if has_tensor(source) else 0
        for back in range(1, min(rank, own) + 1):
            yield (node, rank - back), (source, own - back)
