"""Rules of operators that read by tables, join arrays, pad them, or count."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

import torch
from torch import fx

from tilewright.scheduler.torch.translation.axes import Dimension
from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.index import Index, Indices
from tilewright.scheduler.torch.translation.nodes import arguments, dimension, fake, shape
from tilewright.scheduler.torch.translation.rules import pointwise
from tilewright.scheduler.torch.translation.values import Value

if TYPE_CHECKING:
    from tilewright.scheduler.torch.translation.program import Translation


def _none(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    """No dimension is that of an argument."""
    return iter(())


def counted(node: fx.Node, indices: Indices) -> Index:
    """Return an element of what counts up from a number by steps."""
    given = arguments(node)
    start, step = given.get("start", 0), given.get("step", 1)
    if not isinstance(start, int) or not isinstance(step, int):
        raise Gap("counting by fractions")
    return indices[0] * step + start


@pointwise("iota", "arange", ties=_none, cheap=True)
def _iota(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    return f"({counted(node, indices)})"


def _others(node: fx.Node) -> Iterator[tuple[Dimension, Dimension]]:
    """Yield all dimensions but that along which arrays are joined."""
    given = arguments(node)
    place = dimension(given["dim"], len(shape(node)))
    for source in given["tensors"]:
        for each in range(len(shape(node))):
            if each != place:
                yield (node, each), (source, each)


@pointwise("cat", ties=_others, cheap=True)
def _cat(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    place, first = dimension(given["dim"], len(indices)), 0
    parts: list[tuple[str, int]] = []
    with translation.guarded():
        for source in given["tensors"]:
            at = list(indices)
            at[place] = indices[place] + -first
            first += shape(source)[place]
            parts.append((translation.number(source, at), first))
    text = parts[-1][0]
    for part, end in reversed(parts[:-1]):
        text = f"select({indices[place]} < {end}, {part}, {text})"
    return text


@pointwise("slice_scatter", ties=_none)
def _slice_scatter(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    """Return the source along a slice of a dimension, and the array elsewhere."""
    given = arguments(node)
    place = dimension(given["dim"], len(indices))
    first, step = _start(given["start"], shape(node)[place]), given["step"]
    count = shape(given["src"])[place]
    here, at = indices[place], list(indices)
    at[place] = (here + -first) // step
    conditions = [f"{here} >= {first}", f"{here} < {first + (count - 1) * step + 1}"]
    conditions += [f"({here + -first}) % {step} == 0"] if step > 1 else []
    return _replaced(translation, node, indices, at, " and ".join(conditions))


def _start(given: int | None, extent: int) -> int:
    first = given or 0
    return max(first + extent, 0) if first < 0 else min(first, extent)


@pointwise("select_scatter", ties=_none)
def _select_scatter(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    """Return the source at one index of a dimension, and the array elsewhere."""
    given = arguments(node)
    place = dimension(given["dim"], len(indices))
    number_ = given["index"] % shape(node)[place]
    at = [*indices[:place], *indices[place + 1 :]]
    return _replaced(translation, node, indices, at, f"{indices[place]} == {number_}")


def _replaced(
    translation: Translation, node: fx.Node, indices: Indices, at: Indices, when: str
) -> Value:
    given = arguments(node)
    with translation.guarded():
        source = translation.number(given["src"], at)
    return f"select({when}, {source}, {translation.number(given['self'], indices)})"


@pointwise("fill", ties=_none, cheap=True)
def _fill(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    """Return one number in the shape of an array."""
    return translation.argument(arguments(node)["value"], indices)


@pointwise("copy", ties=_none, cheap=True)
def _copy(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    """Return the source in the shape of another array."""
    return translation.argument(arguments(node)["src"], indices)


@pointwise("constant_pad_nd", ties=_none)
def _pad(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given, at = arguments(node), list(indices)
    for number_, before in enumerate(given["pad"][::2]):
        place = len(at) - 1 - number_
        at[place] = indices[place] + -before
    return translation.padded(given["self"], at, float(given["value"]))


@pointwise("embedding", ties=_none)
def _embedding(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    weight, table = given["weight"], given["indices"]
    rank = len(shape(table))
    row = translation.table_entry(table, indices[:rank], shape(weight)[0])
    return translation.value(weight, [row, *indices[rank:]])


@pointwise("gather", ties=_none)
def _gather(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    source, at = given["self"], list(indices)
    place = dimension(given["dim"], len(indices))
    at[place] = translation.table_entry(given["index"], indices, shape(source)[place])
    return translation.value(source, at)


@pointwise("index_select", ties=_none)
def _index_select(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    source, at = given["self"], list(indices)
    place = dimension(given["dim"], len(indices))
    at[place] = translation.table_entry(given["index"], [indices[place]], shape(source)[place])
    return translation.value(source, at)


def _counted_entry(
    translation: Translation, table: fx.Node, indices: Indices, extent: int
) -> Index:
    """Return an index that the graph counts; one from elsewhere may be negative, which counts from
    the end."""
    found = translation.table_entry(table, indices, extent)
    if not found.within(extent) or any(atom.text[0] == "x" for atom, _ in found.terms):
        raise Gap("an index that may be negative")
    return found


@pointwise("index", ties=_none)
def _index(translation: Translation, node: fx.Node, indices: Indices) -> Value:
    given = arguments(node)
    source, tables = given["self"], list(given["indices"])
    places = [place for place, table in enumerate(tables) if table is not None]
    found = [tables[place] for place in places]
    if any(fake(table).dtype is torch.bool for table in found):
        raise Gap("an index by a mask")
    if places != list(range(places[0], places[-1] + 1)):
        raise Gap("tables that are not side by side")
    first, rank = places[0], max(len(shape(table)) for table in found)
    shared = indices[first : first + rank]
    at: list[Index] = []
    for place, extent in enumerate(shape(source)):
        if place in places:
            own = shape(tables[place])
            part = shared[rank - len(own) :]
            entry = [Index() if e == 1 else i for i, e in zip(part, own, strict=True)]
            at.append(_counted_entry(translation, tables[place], entry, extent))
        else:
            at.append(indices[place if place < first else place - len(places) + rank])
    return translation.value(source, at)
