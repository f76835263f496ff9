"""Graphs of symbolic sizes: with kernels at sizes that their tables cover and at which that is
faster, else without.

Calls of neighbouring sizes are served alike: each table begins them with the same kernel. Such a
span of sizes is timed at its middle. A size of which a table has a kernel is a span of its own, for
its calls are not copied.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import pairwise
from math import prod
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.kernels.open_keys import calling_at
from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.regions.sizes import admits, hints_of, number_of, within
from tilewright.scheduler.torch.translation.nodes import fake
from tilewright.spaces.algebra.integers import ceil_div

Compiled = Callable[[list[Any]], Any]
"""A graph that Inductor compiled: a function of a list of inputs."""
REACH = 128
"""Sizes on each side of a span's middle that are tried: graphs are often called with multiples of a
power of two alone."""


class BySize:
    """The graph ``ours`` where each table has a kernel for the sizes of a call, else ``plain``."""

    _boxed_call = True  # it takes a list, as what Inductor compiles does

    def __init__(self, ours: Compiled, plain: Compiled, sizes: Sizes) -> None:
        self._ours, self._plain, self._sizes = ours, plain, sizes

    def __call__(self, inputs: list[Any]) -> Any:
        """Compute the outputs of a list of inputs, which is emptied."""
        return (self._ours if self._sizes.covers(inputs) else self._plain)(inputs)


@dataclass(frozen=True)
class Extent:
    """The extent of an open axis in a graph, as that of a tensor without values: all of its
    elements over ``others``. ``choice`` has its table."""

    choice: Choice
    tensor: torch.Tensor
    others: int

    def at(self, values: Mapping[Any, int]) -> int:
        """Return the extent for these values of the graph's symbols."""
        return int(number_of(self.tensor.numel(), values)) // self.others

    def starts(self, symbol: Any) -> set[int]:
        """Return the values of the graph's only symbol from which on the table serves calls in
        another way; the extent is so many times the symbol."""
        times = self.at({symbol: 1})
        table = self.choice.table
        assert table is not None
        extents = [end for row in table.rows for end in (row.first, row.last + 1)]
        own = [extent for kernel in table.kernels for extent in (kernel.size, kernel.size + 1)]
        return {ceil_div(extent, times) for extent in (*extents, *own)}


class Sizes:
    """The sizes of calls of a graph, read off its inputs."""

    def __init__(
        self, graph: fx.Graph, inputs: Sequence[Any], regions: Sequence[tuple[Choice, Region]]
    ) -> None:
        self._graph = graph
        self._extents = [_extent(*each) for each in regions if each[1].open_key]
        self._places = {symbol: _place(symbol, inputs) for symbol in hints_of(graph)}
        self._known: dict[tuple[int, ...], bool] = {}
        self._slower: list[range] = []

    @cached_property
    def symbol(self) -> Any:
        """The symbol of a graph that has one, and whose extents are multiples of it; None of any
        other graph."""
        if len(self._places) != 1:
            return None
        (symbol,) = self._places
        sizes = (1, 2, 7)
        proportional = all(
            extent.at({symbol: size}) == size * extent.at({symbol: 1}) > 0
            for extent in self._extents
            for size in sizes
        )
        return symbol if proportional else None

    def spans(self) -> list[range]:
        """Return the spans of covered sizes that are served alike, of a graph with a
        :attr:`symbol`; none has sizes that the graph is never called with."""
        symbol = self.symbol
        starts = sorted({1}.union(*(extent.starts(symbol) for extent in self._extents)))
        spans = [within(self._graph, symbol, range(*ends)) for ends in pairwise(starts)]
        return [span for span in spans if span and self._are_covered({symbol: span.start})]

    def middle(self, span: range) -> int | None:
        """Return the size nearest to the middle of a span that the graph is called with, of those
        within :data:`REACH` and the ends; None if it is called with none of these."""
        place, symbol = len(span) // 2, self.symbol
        near = span[max(0, place - REACH) : place + REACH + 1]
        sizes = (*sorted(near, key=lambda size: abs(size - span[place])), span[0], span[-1])
        return next((size for size in sizes if admits(self._graph, {symbol: size})), None)

    def leave(self, span: range) -> None:
        """Leave the calls of a span to the graph without kernels."""
        self._slower.append(span)
        self._known.clear()

    def covers(self, inputs: Sequence[Any]) -> bool:
        """Tell whether each table has a kernel for the sizes of these inputs, which are not left to
        the graph without kernels."""
        found = tuple(
            int(inputs[place] if dimension is None else inputs[place].shape[dimension])
            for place, dimension in self._places.values()
        )
        if found not in self._known:
            values = dict(zip(self._places, found, strict=True))
            is_slower = any(found[0] in span for span in self._slower)
            self._known[found] = not is_slower and self._are_covered(values)
        return self._known[found]

    def _are_covered(self, values: Mapping[Any, int]) -> bool:
        return all(extent.choice.covers(extent.at(values)) for extent in self._extents)


def by_halves(count: int) -> Iterator[int]:
    """Yield the places of so many things: first the middle one, then those of both halves, and so
    on."""
    parts = [range(count)]
    for part in parts:
        if part:
            middle = len(part) // 2
            yield part[middle]
            parts += [part[:middle], part[middle + 1 :]]


def joined(spans: Sequence[range]) -> list[range]:
    """Return spans in their order, neighbours as one."""
    found: list[range] = []
    for span in spans:
        if found and found[-1].stop == span.start:
            span = range(found.pop().start, span.stop)
        found.append(span)
    return found


def _extent(choice: Choice, region: Region) -> Extent:
    _, shapes = calling_at(region.open_key, 0)
    place = next(place for place, shape in enumerate(shapes) if 0 in shape)
    return Extent(choice, fake(region.operands[place]), prod(e for e in shapes[place] if e))


def _place(symbol: Any, inputs: Sequence[Any]) -> tuple[int, int | None]:
    """Return the input that is a symbol, or the one and its dimension whose extent is."""
    for place, given in enumerate(inputs):
        if isinstance(given, torch.SymInt) and given.node.expr == symbol:
            return place, None
        if isinstance(given, torch.Tensor):
            for dimension, extent in enumerate(given.shape):
                if isinstance(extent, torch.SymInt) and extent.node.expr == symbol:
                    return place, dimension
    raise ValueError(f"no input has the size {symbol}")
