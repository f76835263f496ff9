"""Rules of products of matrices: a sum over the depth, and what is added to it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from torch import fx

from tilewright.scheduler.torch.translation.axes import Dimension
from tilewright.scheduler.torch.translation.index import Indices
from tilewright.scheduler.torch.translation.nodes import arguments, shape
from tilewright.scheduler.torch.translation.rules import Kind, reducing
from tilewright.scheduler.torch.translation.values import Value, number

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Translation


def factors_of(node: fx.Node) -> tuple[fx.Node, fx.Node]:
    """Return both matrices, or batches of them."""
    given = arguments(node)
    left = given.get("mat1", given.get("batch1", given.get("self")))
    right = given.get("mat2", given.get("batch2"))
    return left, right


def _ties(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    left, right = factors_of(node)
    rank = len(shape(node))
    yield (node, rank - 2), (left, rank - 2)
    yield (node, rank - 1), (right, rank - 1)
    yield (left, rank - 1), (right, rank - 2)
    for place in range(rank - 2):
        yield (node, place), (left, place)
        yield (node, place), (right, place)


@reducing(Kind.PRODUCT, "mm", "bmm", ties=_ties)
def _product(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    return _sum(translation, node, indices)


@reducing(Kind.PRODUCT, "addmm", "baddbmm", ties=_ties)
def _added(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    given = arguments(node)
    text = _scaled(translation, _sum(translation, node, indices), given["alpha"])
    if given["beta"] == 0:
        return text
    beside = number(translation.argument(given["self"], indices))
    return f"({text} + {_scaled(translation, beside, given['beta'])})"


def _scaled(translation: Translation, text: str, factor: Any) -> str:
    return text if factor == 1 else f"({number(translation.constant(factor))} * {text})"


def _sum(translation: Translation, node: fx.Node, indices: Indices) -> str:
    place = translation.placed(node, indices)
    stage = translation.known(place.key)
    if stage is None:
        left, right = factors_of(node)
        taken = [axis for axis in place.axes if axis]
        depth = translation.axes.index((left, len(shape(left)) - 1), taken)
        *batch, row, column = place.computed
        with translation.guarded(False):
            first = translation.number(left, [*batch, row, depth])
            second = translation.number(right, [*batch, depth, column])
        body = f"{first} * {second}"
        body = f"sum[{depth}]({body})" if depth.terms else body
        stage = translation.stage(place.key, place.axes, body)
    return translation.element(stage, place.read)
