"""Masks of attention that a graph computes from nothing: which keys each query sees.

Such a mask is evaluated by torch once. If the keys of each query are neighbours that move along
with it, as those of causal and of sliding masks do, a kernel need not look at the others at all.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import Tensor, fx
from torch.utils import _pytree as pytree
from torch.utils._python_dispatch import _disable_current_modes

from tilewright.scheduler.torch.translation.nodes import (
    arguments,
    has_plain_shape,
    name_of,
    shape,
    sources_of,
)

HIDDEN = -1e30
"""Scores from which down on a key is hidden."""
LARGEST = 1 << 24
"""Elements of a mask that is evaluated."""
_META = "tilewright_band"


@dataclass(frozen=True)
class Band:
    """The keys of query ``i``: from ``i - before`` to ``i + after``; None where nothing ends
    them."""

    before: int | None
    after: int | None


def mask_of(attention: fx.Node) -> fx.Node | None:
    """Return the node that is the mask, or the bias, of an attention's scores."""
    given = arguments(attention)
    found = given.get("attn_mask", given.get("attn_bias"))
    return found if isinstance(found, fx.Node) else None


def band_of(mask: fx.Node) -> Band | None:
    """Return the band that a mask leaves; None of a mask that depends on inputs, or is another
    one."""
    if not all(map(has_plain_shape, sources_of(mask))):
        return None
    base = _behind_copies(mask)
    if _META not in base.meta:
        base.meta[_META] = _found(base)
    return base.meta[_META]


def _behind_copies(mask: fx.Node) -> fx.Node:
    """Return the node with the same rows and keys that is only repeated for heads and layers."""
    while name_of(mask) in ("expand", "clone", "alias", "detach"):
        (source,) = mask.all_input_nodes
        if shape(source)[-2:] != shape(mask)[-2:]:
            break
        mask = source
    return mask


def _found(mask: fx.Node) -> Band | None:
    nodes = sources_of(mask)
    if not all(map(_is_computed, nodes)):
        return None
    values: dict[fx.Node, Any] = {}
    with _disable_current_modes():
        for node in mask.graph.nodes:
            if node in nodes:
                values[node] = _run(node, values)
        return _band(values[mask])


def _is_computed(node: fx.Node) -> bool:
    """Tell whether a node may be evaluated here: it is no input, no random number, not large."""
    tags = getattr(node.target, "tags", ())
    if node.op != "call_function" or node.is_impure() or torch.Tag.nondeterministic_seeded in tags:
        return False
    return prod(shape(node)) <= LARGEST


def _run(node: fx.Node, values: dict[fx.Node, Any]) -> Any:
    """Return the value of a node, on the CPU wherever the graph runs."""
    args, kwargs = fx.map_arg((node.args, node.kwargs), values.__getitem__)
    cpu = torch.device("cpu")
    args, kwargs = pytree.tree_map_only(torch.device, lambda _: cpu, (args, kwargs))
    return node.target(*args, **kwargs)


def _band(mask: Tensor) -> Band | None:
    """Return the band of a mask: of truth values, or of zeros and of what hides."""
    same = [slice(None) if step else slice(0, 1) for step in mask.stride()[:-2]]
    rows = mask[(*same, ...)].flatten(0, -3) if mask.dim() > 2 else mask[None]
    seen = rows if rows.dtype is torch.bool else rows > HIDDEN
    adds = rows.dtype is not torch.bool and bool(rows[seen].any())
    if adds or not bool((seen == seen[:1]).all()):
        return None
    return _neighbours(seen[0])


def _neighbours(seen: Tensor) -> Band | None:
    """Return the band of a table of truth values, a row for each query."""
    queries, keys = seen.shape
    place = torch.arange(queries)
    first = seen.int().argmax(1)
    last = keys - 1 - seen.flip(1).int().argmax(1)
    if not bool((seen.sum(1) == last - first + 1).all()):
        return None
    before = _offset(place - first, first > 0)
    after = _offset(last - place, last < keys - 1)
    made = Band(before, after)
    return made if torch.equal(_table(made, queries, keys), seen) else None


def _offset(offsets: Tensor, ended: Tensor) -> int | None:
    """Return the offset of the first row that a band ends in; None if there is none."""
    return int(offsets[ended][0]) if bool(ended.any()) else None


def _table(band: Band, queries: int, keys: int) -> Tensor:
    """Return the truth values of a band."""
    key, query = torch.arange(keys)[None], torch.arange(queries)[:, None]
    seen = torch.ones(queries, keys, dtype=torch.bool)
    seen &= True if band.before is None else key >= query - band.before
    seen &= True if band.after is None else key <= query + band.after
    return seen
