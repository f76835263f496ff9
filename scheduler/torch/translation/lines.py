"""The lines of a program's stages, without those that say nothing."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

_REDUCED = re.compile(r"\[([^\[\]]*)\]\(")


@dataclass(frozen=True)
class Definition:
    """One line ``name[axes] = body``."""

    name: str
    axes: tuple[str, ...]
    body: str

    @property
    def over(self) -> list[str]:
        """The axes that are reduced."""
        return [axis for axes in _REDUCED.findall(self.body) for axis in axes.split(", ")]

    def __str__(self) -> str:
        return f"{entry(self.name, self.axes)} = {self.body}"


def entry(name: str, indices: Iterable[object]) -> str:
    """Return one element of an array, as the language writes it."""
    words = ", ".join(map(str, indices))
    return f"{name}[{words}]" if words else name


def tidied(
    lines: Sequence[Definition], results: Sequence[str]
) -> tuple[list[Definition], list[str]]:
    """Return the lines without outputs that only repeat another stage, and without what no output
    needs; and the outputs' names."""
    lines, results = list(lines), list(results)
    for place, name in enumerate(results):
        line = next(line for line in lines if line.name == name)
        other = next((each for each in lines if _repeats(line, each)), None)
        if other is None or other.name in results:
            continue
        if _count(other.name, lines) > 2:  # its definition, this line, and more
            if other.axes != line.axes:
                continue
            results[place] = other.name
            lines.remove(line)
            lines = [_renamed(each, line.name, other.name) for each in lines]
        else:
            lines[lines.index(line)] = replace(line, body=other.body)
            lines.remove(other)
    return _needed(lines, results), results


def _needed(lines: Sequence[Definition], results: Iterable[str]) -> list[Definition]:
    """Return the lines of outputs, and of all that these read."""
    needed, found = set(results), list[Definition]()
    for line in reversed(lines):
        if line.name in needed:
            needed.update(re.findall(r"\w+", line.body))
            found.append(line)
    return found[::-1]


def _repeats(line: Definition, other: Definition) -> bool:
    """Tell whether a line only gives another stage's elements, perhaps in another order."""
    return line.body == entry(other.name, other.axes) and set(line.axes) == set(other.axes)


def _renamed(line: Definition, name: str, other: str) -> Definition:
    """Return a line that reads another stage in the place of the one of a name."""
    return replace(line, body=re.sub(rf"\b{name}\b", other, line.body))


def _count(name: str, lines: Iterable[Definition]) -> int:
    """Return how often a name occurs."""
    return sum(len(re.findall(rf"\b{name}\b", str(line))) for line in lines)
