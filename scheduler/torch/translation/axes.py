"""Names of axes: dimensions of different nodes that are one loop get one name."""

from __future__ import annotations

from collections.abc import Collection
from typing import Any

from torch import fx

from tilewright.scheduler.torch.translation.index import Index
from tilewright.scheduler.torch.translation.nodes import shape

Dimension = tuple[fx.Node, int]


class Axes:
    """Classes of dimensions (a union-find), and the axes that are named after them."""

    def __init__(self) -> None:
        self.extents: dict[str, int] = {}
        self._parents: dict[Dimension, Dimension] = {}
        self._names: dict[Any, str] = {}

    def tie(self, one: Dimension, other: Dimension) -> None:
        """Take two dimensions for one, if they have equal extents of more than one element."""
        extent = shape(one[0])[one[1]]
        if extent == shape(other[0])[other[1]] and extent > 1:
            self._parents[self._root(one)] = self._root(other)

    def of(self, wanted: Dimension, taken: Collection[str] = ()) -> str:
        """Return the axis of a dimension: that of its class, or another one if that is
        ``taken``."""
        node, place = wanted
        return self._named(self._root(wanted), shape(node)[place], taken)

    def index(self, wanted: Dimension, taken: list[str]) -> Index:
        """Return the axis of a dimension as an index, and a further one ``taken``; 0 of one
        element."""
        node, place = wanted
        if shape(node)[place] == 1:
            return Index()
        taken.append(self.of(wanted, taken))
        return self.value(taken[-1])

    def new(self, extent: int) -> str:
        """Return an axis that nothing else has."""
        return self._named(object(), extent, ())

    def value(self, name: str) -> Index:
        """Return an axis as an index."""
        return Index.of(name, 0, self.extents[name] - 1)

    def _named(self, root: Any, extent: int, taken: Collection[str]) -> str:
        number = 0
        while True:
            name = self._names.setdefault((root, number), f"a{len(self._names)}")
            if name not in taken:
                self.extents[name] = extent
                return name
            number += 1

    def _root(self, of: Dimension) -> Dimension:
        while (parent := self._parents.get(of, of)) != of:
            of = parent
        return of
