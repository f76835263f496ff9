"""Neighbouring axes that act as one become one axis: 4 x 32 rows are 128 rows.

Regions that differ by such axes alone then have one key. Two axes act as one where each array is
read, and each stage is defined, at both side by side or at their number counted row by row, and
memory holds one behind the other.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from math import prod

from tilewright.scheduler.torch.translation.arrays import Described
from tilewright.scheduler.torch.translation.index import Index, split
from tilewright.scheduler.torch.translation.lines import Definition

_WORD = re.compile(r"\w+")
_SPLIT = re.compile(r",\s*")
PLACED = {"argmax", "argmin"}
"""Reductions whose result counts along an axis."""
Pair = tuple[str, str]


@dataclass(frozen=True)
class Lines:
    """A program: its stages, its ``arrays`` by name, ``conditions`` and the extents of axes."""

    stages: tuple[Definition, ...]
    arrays: Mapping[str, Described]
    conditions: tuple[str, ...]
    extents: Mapping[str, int]


@dataclass(frozen=True)
class Group:
    """The content of one pair of brackets: the indices of ``name``, or the axes of a reduction."""

    name: str
    indices: tuple[str, ...]


def folded(lines: Lines) -> Lines:
    """Fold as many axes as can be, and number them as they occur."""
    for name in lines.arrays:
        lines = _whole(name, lines)
    while True:
        every = list(_groups(lines))
        words = Counter(word for text in _texts(lines) for word in _WORD.findall(text))
        pairs = _neighbours(every)
        found = next((p for p in pairs if _act_as_one(p, lines, every, words)), None)
        if found is None:
            return _numbered(_with_shared_axes(lines))
        lines = _joined(found, lines)


def _whole(name: str, lines: Lines) -> Lines:
    """Return the program whose array of a name has one dimension in the place of several, where it
    is read at the digits of one axis there everywhere."""
    array = lines.arrays[name]
    for first in range(len(array.shape) - 1):
        for end in range(len(array.shape), first + 1, -1):
            every = [g.indices[first:end] for g in _groups(lines) if g.name == name]
            axes = {_digits(array.shape[first:end], a, n): a for a, n in lines.extents.items()}
            dense = all(
                _is_dense(array, array.shape[place + 1], place) for place in range(first, end - 1)
            )
            if every and dense and axes.keys() >= set(every):
                return _whole(name, _read_whole(lines, name, first, end, axes))
    return lines


def _digits(shape: tuple[int, ...], axis: str, extent: int) -> tuple[str, ...]:
    """Return the indices at which an array of a shape has the element that an axis numbers; none
    if it does not number all of them."""
    if prod(shape) != extent:
        return ()
    return tuple(map(str, split(Index.of(axis, 0, extent - 1), shape)))


def _read_whole(
    lines: Lines, name: str, first: int, end: int, axes: Mapping[tuple[str, ...], str]
) -> Lines:
    """Return the program that reads an array at an axis in the place of its digits."""

    def renamed(text: str) -> str:
        done, start = "", re.compile(rf"\b{name}\[")
        while found := start.search(text):
            inner = _to_bracket(text[found.end() :])
            parts = _parted(inner)
            parts[first:end] = [axes[tuple(parts[first:end])]]
            done += f"{text[: found.end()]}{', '.join(parts)}]"
            text = text[found.end() + len(inner) + 1 :]
        return done + text

    array = lines.arrays[name]
    for _ in range(first, end - 1):
        array = _merged(array, first)
    return Lines(
        tuple(replace(line, body=renamed(line.body)) for line in lines.stages),
        {**lines.arrays, name: array},
        lines.conditions,
        lines.extents,
    )


def _to_bracket(text: str) -> str:
    """Return what stands before the bracket that ends a group."""
    depth = 1
    for place, letter in enumerate(text):
        depth += (letter == "[") - (letter == "]")
        if not depth:
            return text[:place]
    return text


def _with_shared_axes(lines: Lines) -> Lines:
    """Return the program whose maps have the axes of a stage that they read element by element: its
    outputs then have one name for what is one axis."""
    found = dict[str, Definition]()
    for line in lines.stages:
        found[line.name] = _like_what_it_reads(line, found, lines.extents)
    return replace(lines, stages=tuple(found.values()))


def _like_what_it_reads(
    line: Definition, known: Mapping[str, Definition], extents: Mapping[str, int]
) -> Definition:
    """Return a map under the names of axes of the first stage that it reads element by element."""
    for group in () if line.over else _brackets(line.body):
        axes = known[group.name].axes if group.name in known else ()
        if sorted(group.indices) != sorted(line.axes) or len(axes) != len(line.axes):
            continue
        names = dict(zip(group.indices, axes, strict=True))
        others = set(_WORD.findall(line.body)) - names.keys()
        alike = all(extents[own] == extents[axis] for own, axis in names.items())
        if alike and others.isdisjoint(names.values()):
            return _renamed(line, names)
    return line


def _renamed(line: Definition, names: Mapping[str, str]) -> Definition:
    """Return a line with other names of axes."""

    def renamed(text: str) -> str:
        return _WORD.sub(lambda word: names.get(word[0], word[0]), text)

    return Definition(line.name, tuple(map(renamed, line.axes)), renamed(line.body))


def _numbered(lines: Lines) -> Lines:
    """Return the same program with axes that are called ``a0``, ``a1`` and so on."""
    words = (word for text in _texts(lines) for word in _WORD.findall(text))
    occurring = [word for word in dict.fromkeys(words) if word in lines.extents]
    names = {axis: f"a{number}" for number, axis in enumerate(occurring)}

    def renamed(text: str) -> str:
        return _WORD.sub(lambda word: names.get(word[0], word[0]), text)

    return Lines(
        tuple(_renamed(line, names) for line in lines.stages),
        lines.arrays,
        tuple(map(renamed, lines.conditions)),
        {name: lines.extents[axis] for axis, name in names.items()},
    )


def _neighbours(groups: Iterable[Group]) -> list[Pair]:
    """Return the pairs of axes that stand side by side somewhere."""
    pairs = (
        pair for group in groups for pair in zip(group.indices, group.indices[1:], strict=False)
    )
    return [pair for pair in dict.fromkeys(pairs) if all(map(_WORD.fullmatch, pair))]


def _act_as_one(
    pair: Pair, lines: Lines, groups: Sequence[Group], words: Mapping[str, int]
) -> bool:
    """Tell whether both axes occur together alone, and at the same dimensions of each array.
    ``words`` says how often each occurs."""
    slow, fast = pair
    if slow not in lines.extents or fast not in lines.extents or slow == fast:
        return False
    places: dict[str, set[int | None]] = {}
    together = 0
    for group in groups:
        at = _place(pair, group)
        flat = sum(group.indices.count(number) for number in _numbers(pair, lines.extents))
        together += (at is not None) + flat
        if at is not None and group.name in PLACED:
            return False
        if not flat or at is not None:
            places.setdefault(group.name, set()).add(at)
    if not words[slow] == words[fast] == together:
        return False
    named = {line.name for line in lines.stages} | lines.arrays.keys()
    return all(
        len(at) == 1 and _is_dense(lines.arrays.get(name), lines.extents[fast], *at)
        for name, at in places.items()
        if name in named
    )


def _is_dense(array: Described | None, fast: int, place: int | None) -> bool:
    """Tell whether memory holds the rows of two dimensions, from ``place`` on, without gaps, and
    an axis of ``fast`` points walks through a whole row."""
    if array is None or place is None:
        return True
    if array.shape[place + 1] != fast:
        return False
    rank = array.order.index(place)
    follows = array.order[rank + 1 : rank + 2] == (place + 1,)
    return follows and (array.leading is None or place + 1 != array.order[-1])


def _joined(pair: Pair, lines: Lines) -> Lines:
    """Return the program with one axis in the place of two, under the name of the slow one."""
    slow, fast = pair
    side_by_side = re.compile(rf"\b{slow}, {fast}\b")
    numbers = "|".join(map(re.escape, _numbers(pair, lines.extents)))
    number = re.compile(rf"\b(?:{numbers})\b")

    def renamed(text: str) -> str:
        return number.sub(slow, side_by_side.sub(slow, text))

    at = {
        group.name: place for group in _groups(lines) if (place := _place(pair, group)) is not None
    }
    extents = {axis: extent for axis, extent in lines.extents.items() if axis != fast}
    extents[slow] *= lines.extents[fast]
    return Lines(
        tuple(
            replace(line, axes=tuple(a for a in line.axes if a != fast), body=renamed(line.body))
            for line in lines.stages
        ),
        {n: _merged(a, at[n]) if n in at else a for n, a in lines.arrays.items()},
        lines.conditions,
        extents,
    )


def _merged(array: Described, place: int) -> Described:
    """Return the array with one dimension in the place of that at ``place`` and the next."""
    extent = array.shape[place] * array.shape[place + 1]
    shape = (*array.shape[:place], extent, *array.shape[place + 2 :])
    order = tuple(d - (d > place) for d in array.order if d != place + 1)
    return replace(array, shape=shape, order=order)


def _numbers(pair: Pair, extents: Mapping[str, int]) -> tuple[str, str]:
    """Return the index that counts the points of two axes row by row, in both orders of its
    terms."""
    slow, fast = f"{extents[pair[1]]} * {pair[0]}", pair[1]
    return f"{slow} + {fast}", f"{fast} + {slow}"


def _place(pair: Pair, group: Group) -> int | None:
    """Return the first of two dimensions that have the pair's axes as indices, if there are
    such."""
    pairs = list(pairwise(group.indices))
    return pairs.index(pair) if pair in pairs else None


def _texts(lines: Lines) -> Iterator[str]:
    yield from map(str, lines.stages)
    yield from lines.conditions


def _groups(lines: Lines) -> Iterator[Group]:
    for text in _texts(lines):
        yield from _brackets(text)


def _brackets(text: str) -> Iterator[Group]:
    """Yield all pairs of brackets in a text, inner ones as well."""
    begun: list[int] = []
    for place, letter in enumerate(text):
        if letter == "[":
            begun.append(place)
        elif letter == "]":
            start = begun.pop()
            name = re.search(r"\w*\Z", text[:start])
            yield Group(name[0] if name else "", tuple(_parted(text[start + 1 : place])))


def _parted(text: str) -> list[str]:
    """Return the parts between commas that stand in no brackets."""
    if "[" not in text and "(" not in text:
        return _SPLIT.split(text)
    parts, depth = [""], 0
    for letter in text:
        depth += (letter in "[(") - (letter in "])")
        if letter == "," and not depth:
            parts.append("")
        else:
            parts[-1] += letter
    return [part.strip() for part in parts]
