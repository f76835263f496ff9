"""The rule of attention: scores, their softmax, and the mean of the values that it weighs."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import torch
from torch import fx

from tilewright.scheduler.torch.translation.axes import Dimension
from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.masks import Band, band_of, mask_of
from tilewright.scheduler.torch.translation.nodes import arguments, fake, name_of, shape
from tilewright.scheduler.torch.translation.rules import Kind, reducing
from tilewright.scheduler.torch.translation.values import LARGEST, Value, chosen, number

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Placed, Translation

HIDDEN = "-1e30"
"""The score of a key that a mask hides."""
BY_CPU = "_scaled_dot_product_flash_attention_for_cpu"
NAMES = (
    BY_CPU,
    "_scaled_dot_product_flash_attention",
    "_scaled_dot_product_efficient_attention",
    "_scaled_dot_product_cudnn_attention",
    "_scaled_dot_product_fused_attention_overrideable",
)


def lengths(node: fx.Node) -> tuple[Any, Any]:
    """Return the number of keys of a node that is attention, and that of values, which is the
    same: symbolic ones may differ in name."""
    given = arguments(node)
    return fake(given["key"]).shape[-2], fake(given["value"]).shape[-2]


def _ties(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    given = arguments(node)
    query, value = given["query"], given["value"]
    for place in range(3):
        yield (node, place), (query, place)
    yield (node, 3), (value, 3)


@reducing(Kind.PRODUCT, *NAMES, ties=_ties)
def _attention(translation: Translation, node: fx.Node, indices: Indices, part: int) -> Value:
    if len(indices) != 4:
        raise Gap("attention without a dimension of heads")
    if arguments(node).get("dropout_p"):
        raise Gap("dropout")
    place = translation.placed(node, indices)
    stage = translation.known(place.key)
    if stage is None:
        with translation.guarded(False):
            body = _body(translation, node, place)
        stage = translation.stage(place.key, place.axes, body)
    return translation.element(stage, place.read)


def _body(translation: Translation, node: fx.Node, place: Placed) -> str:
    given = arguments(node)
    query, key, value = (given[name] for name in ("query", "key", "value"))
    batch, head, row, column = place.computed
    own = _own_axis(translation, shape(key)[2])
    inner = _own_axis(translation, shape(query)[3])
    group = shape(query)[1] // shape(key)[1]
    shared = head // group
    first = translation.number(query, [batch, head, row, inner])
    second = translation.number(key, [batch, shared, own, inner])
    scale = given.get("scale")
    scale = shape(query)[3] ** -0.5 if scale is None else scale
    dot = f"sum[{inner}]({first} * {second})" if inner.terms else f"{first} * {second}"
    score, hidden = _masked(translation, node, f"{dot} * {float(scale)!r}", [batch, head, row, own])
    if given.get("is_causal") and own.terms:
        if shape(query)[2] != shape(key)[2] and name_of(node) != BY_CPU:
            raise Gap("a causal mask of fewer queries than keys")
        translation.conditions[f"where {own} <= {row}"] = str(own)
    read = translation.number(value, [batch, shared, own, column])
    if own.terms:
        score, read = f"max[{own}]({score})", f"sum[{own}](softmax[{own}]({score}) * {read})"
    return f"select({score} {hidden}, 0, {read})" if hidden else read


def _bound(translation: Translation, band: Band, row: Index, own: Index) -> None:
    """Hide the keys that are not in a band."""
    if own.terms and band.after is not None:
        translation.conditions[f"where {own} <= {row + band.after}"] = str(own)
    if own.terms and band.before is not None:
        translation.conditions[f"where {own} >= {row + -band.before}"] = str(own)


def _lengths(translation: Translation, mask: fx.Node, at: Indices) -> list[str]:
    """Return the conditions that a mask sets on the axis of the keys; none of another mask."""
    from tilewright.scheduler.torch.translation.hiding import conditions_of

    own = at[-1]
    if not own.terms or mask not in translation.nodes:
        return []
    part = at[len(at) - len(shape(mask)) :]
    indices = [Index() if e == 1 else i for i, e in zip(part, shape(mask), strict=True)]
    found = conditions_of(translation, mask, indices, own.range[1] + 1) or []
    return found if all(str(own) in re.findall(r"\w+", text) for text in found) else []


def _own_axis(translation: Translation, extent: int) -> Index:
    return translation.axes.value(translation.axes.new(extent))


def _masked(translation: Translation, node: fx.Node, score: str, at: Indices) -> tuple[str, str]:
    """Return a score with its mask, and how the greatest score of a row compares all of whose keys
    are hidden: its result is 0. A mask that is a band bounds the keys instead."""
    mask = mask_of(node)
    if mask is None:
        return score, ""
    if mask in translation.nodes and (band := band_of(mask)):
        *_, row, own = at
        _bound(translation, band, row, own)
        return score, ""
    if conditions := _lengths(translation, mask, at):
        translation.conditions |= {f"where {text}": str(at[-1]) for text in conditions}
        return score, ""
    found = translation.argument(mask, at)
    if fake(mask).dtype is torch.bool and not isinstance(found, str):
        return chosen(found, score, HIDDEN), f"<= ({HIDDEN})"
    return f"{score} + {number(found)}", f"< (-{LARGEST!r})"
