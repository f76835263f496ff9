"""Dimensions of arrays between stages in the order in which sums read them.

A product ``s[i, j] = sum[d](q[i, d] * k[j, d])`` that the next sum reads along ``i`` is kept with
``i`` last: so templates of chains find the axis that is reduced, and arrays in memory have the
elements that are added side by side.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import replace

from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read


def arranged(stages: Sequence[Stage], fixed: Collection[str]) -> list[Stage]:
    """Return the stages with the dimensions of sums in the order of their readers, without those
    that are ``fixed``."""
    by_name = {stage.name: stage for stage in stages}
    wanted: dict[str, set[str]] = {}
    for stage in stages:
        if stage.reducer == "sum":
            _note(stage, by_name, wanted)
    orders = {
        name: _order(by_name[name].axes, axes.pop())
        for name, axes in wanted.items()
        if len(axes) == 1 and name not in fixed
    }
    return [_arranged(stage, orders) for stage in stages]


def _note(stage: Stage, by_name: Mapping[str, Stage], wanted: dict[str, set[str]]) -> None:
    """Note the last axis that a sum reduces of each sum before it, through the maps between."""
    seen, waiting = set[str](), [stage.body]
    while waiting:
        for read in waiting.pop().value_reads:
            found = by_name.get(read.name)
            if found is None or found.name in seen:
                continue
            seen.add(found.name)
            if found.reducer is None:
                waiting.append(found.body)
            elif axes := _reduced(stage, found, read):
                wanted.setdefault(found.name, set()).add(axes[-1])


def _reduced(stage: Stage, found: Stage, read: Read) -> list[str]:
    pairs = zip(found.axes, read.indices, strict=True)
    return [axis for axis, i in pairs if isinstance(i, AxisValue) and i.name in stage.over]


def _order(axes: tuple[str, ...], last: str) -> tuple[int, ...]:
    place = axes.index(last)
    return (*(other for other in range(len(axes)) if other != place), place)


def _arranged(stage: Stage, orders: Mapping[str, tuple[int, ...]]) -> Stage:
    body = _read(stage.body, orders)
    if stage.name not in orders:
        return replace(stage, body=body)
    axes = tuple(stage.axes[place] for place in orders[stage.name])
    return replace(stage, axes=axes, body=body)


def _read(node: Expression, orders: Mapping[str, tuple[int, ...]]) -> Expression:
    children = tuple(_read(child, orders) for child in node.children)
    if isinstance(node, Read) and node.name in orders:
        return Read(node.name, tuple(children[p] for p in orders[node.name]), node.outside)
    return node if children == node.children else node.with_children(children)
