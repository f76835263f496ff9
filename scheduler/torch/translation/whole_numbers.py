"""Ranges of whole numbers: torch's wrap around where a result leaves its dtype, kernels' do not."""

from __future__ import annotations

from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.nodes import arguments, fake, has_tensor, name_of, shape
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import kind_of

Range = tuple[int, int]
"""The least and the greatest value that a whole number may have."""

CONVERSIONS = ("convert_element_type", "_to_copy")
COUNTED = ("iota", "arange")
ARITHMETIC = ("add", "sub", "rsub", "mul", "neg", "abs")
"""Operators whose results have a range that follows from those of their arguments."""
UNKNOWN = (
    "square", "pow", "fma", "addcmul", "sum", "prod", "cumsum", "cumprod",
    "mm", "bmm", "addmm", "baddbmm", "convolution",
)  # fmt: skip
"""Operators whose results may leave any dtype."""

DEPTH = 6
"""The number of operators that are looked at for a range, one behind the other."""


def check_wrapping(node: fx.Node) -> None:
    """Check that no result of a node of whole numbers leaves the node's dtype; :class:`Gap` if one
    may, for torch's wraps around then. 64 bits are taken to be enough."""
    if not _is_narrow(node):
        return
    name = name_of(node)
    least, greatest = _all_of(node)
    found = _found(node) if name in (*ARITHMETIC, *CONVERSIONS) else None
    if name in UNKNOWN or (found and not least <= found[0] <= found[1] <= greatest):
        raise Gap(f"{name} of {fake(node).dtype}, which may wrap around")


def _is_narrow(node: fx.Node) -> bool:
    """Tell whether a node has whole numbers of fewer than 64 bits."""
    if not has_tensor(node):
        return False
    kind = fake(node).dtype
    return _is_whole(node) and kind is not torch.bool and kind.itemsize < 8


def _is_whole(node: fx.Node) -> bool:
    """Tell whether a node has whole numbers or truth values."""
    kind = fake(node).dtype
    return not (kind.is_floating_point or kind.is_complex)


def _all_of(node: fx.Node) -> Range:
    """Return the range of a node's dtype."""
    kind = fake(node).dtype
    if kind is torch.bool:
        return 0, 1
    return torch.iinfo(kind).min, torch.iinfo(kind).max


def _range(given: Any, depth: int) -> Range:
    """Return the range of an argument: what is known of it, within its dtype."""
    if not isinstance(given, fx.Node):
        return int(given), int(given)
    least, greatest = _all_of(given)
    found = _found(given, depth - 1) if depth else None
    inside = found is not None and least <= found[0] <= found[1] <= greatest
    return found if found is not None and inside else (least, greatest)


def _found(node: fx.Node, depth: int = DEPTH) -> Range | None:
    """Return the range of a node as its operator has it, before it wraps around; None of an
    operator whose results are within those of its dtype."""
    name = name_of(node)
    if name in CONVERSIONS or kind_of(node) is Kind.VIEW:
        (source, *_) = node.all_input_nodes
        return _range(source, depth) if _is_whole(source) else None
    if name in COUNTED:
        given, count = arguments(node), shape(node)[0]
        start, step = given.get("start", 0), given.get("step", 1)
        return _around(start, start + step * (count - 1))
    if name == "neg":
        return _around(*(-end for end in _range(node.args[0], depth)))
    if name == "abs":
        least, greatest = _range(node.args[0], depth)
        return max(least, -greatest, 0), max(-least, greatest)
    return _of_two(node, depth) if name in ARITHMETIC else None


def _of_two(node: fx.Node, depth: int) -> Range:
    """Return the range of a sum, a difference or a product."""
    given, name = arguments(node), name_of(node)
    sides = [_range(given[side], depth) for side in ("self", "other")]
    left, right = reversed(sides) if name == "rsub" else sides
    if name == "mul":
        return _around(*(one * other for one in left for other in right))
    factor = int(given.get("alpha", 1)) * (1 if name == "add" else -1)
    return _around(*(one + factor * other for one in left for other in right))


def _around(*numbers: int) -> Range:
    return min(numbers), max(numbers)
