"""Conditions under which masks that depend on inputs let a key be seen, such as the length of a
static cache."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from torch import fx

from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.masks import HIDDEN
from tilewright.scheduler.torch.translation.nodes import arguments, fake, name_of, shape
from tilewright.scheduler.torch.translation.table import rule_of, seen_through
from tilewright.scheduler.torch.translation.tables import as_index

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Translation

COMPARISONS = {"lt": "<", "le": "<=", "gt": ">", "ge": ">="}
JOINING = ("logical_and", "bitwise_and")
CONSTANTS = {"full": "fill_value", "scalar_tensor": "s"}


def compares(mask: fx.Node) -> bool:
    """Tell whether comparisons of whole numbers that all hold decide what a mask lets be seen."""
    parts = _parts(mask)
    if parts is None:
        return name_of(mask) in COMPARISONS and all(map(_is_whole, mask.args))
    return all(isinstance(part, fx.Node) and compares(part) for part in parts)


def _parts(mask: fx.Node) -> list[Any] | None:
    """Return the masks of which a mask is made, and which must all let a key be seen; None of one
    that is not made of masks."""
    rule, name = rule_of(mask), name_of(mask)
    if rule is not None and rule.view is not None:
        return [mask.all_input_nodes[0]]
    if name in JOINING:
        return list(mask.args)
    given = arguments(mask) if name == "where" else {}
    if given and _constant(given["self"]) == 0 and _constant(given["other"], 0.0) <= HIDDEN:
        return [given["condition"]]
    return None


def conditions_of(
    translation: Translation, mask: fx.Node, indices: Indices, keys: int
) -> list[str] | None:
    """Return the comparisons by which an element of a mask lets one of so many ``keys`` be seen;
    None of a mask that is not made of them."""
    if mask not in translation.nodes or not compares(mask):
        return None
    return _compared(translation, mask, indices, keys)


def _compared(translation: Translation, mask: fx.Node, indices: Indices, keys: int) -> list[str]:
    rule, parts = rule_of(mask), _parts(mask)
    if rule is not None and rule.view is not None:
        return _compared(translation, *seen_through(mask, indices), keys)
    if parts is not None:
        sides = (_compared(translation, *_broadcast(part, indices), keys) for part in parts)
        return [text for side in sides for text in side]
    left, right = (_number(translation, side, indices, keys + 1) for side in mask.args)
    return [f"{left} {COMPARISONS[name_of(mask)]} {right}"]


def _constant(given: Any, otherwise: float = 1.0) -> float:
    """Return the value of all elements of a node, or ``otherwise`` if that is not known."""
    if isinstance(given, int | float):
        return given
    if not isinstance(given, fx.Node) or name_of(given) not in CONSTANTS:
        return otherwise
    found = arguments(given)[CONSTANTS[name_of(given)]]
    return found if isinstance(found, int | float) else otherwise


def _is_whole(given: Any) -> bool:
    if isinstance(given, fx.Node):
        return not fake(given).dtype.is_floating_point
    return isinstance(given, int)


def _number(translation: Translation, given: Any, indices: Indices, below: int) -> Index:
    if not isinstance(given, fx.Node):
        return Index((), given)
    return as_index(translation, *_broadcast(given, indices), below)


def _broadcast(node: fx.Node, indices: Indices) -> tuple[fx.Node, list[Index]]:
    own = shape(node)
    part = indices[len(indices) - len(own) :]
    return node, [Index() if e == 1 else i for i, e in zip(part, own, strict=True)]
