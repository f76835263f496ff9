"""Graphs of symbolic sizes: with kernels at sizes that their tables cover, else without."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from math import prod
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.kernels.open_keys import calling_at
from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.regions.sizes import hints_of, number_of
from tilewright.scheduler.torch.translation.nodes import fake

Compiled = Callable[[list[Any]], Any]
"""A graph that Inductor compiled: a function of a list of inputs."""


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


class Sizes:
    """The sizes of calls of a graph, read off its inputs."""

    def __init__(
        self, graph: fx.Graph, inputs: Sequence[Any], regions: Sequence[tuple[Choice, Region]]
    ) -> None:
        self._extents = [_extent(*each) for each in regions if each[1].open_key]
        self._places = {symbol: _place(symbol, inputs) for symbol in hints_of(graph)}
        self._known: dict[tuple[int, ...], bool] = {}

    def covers(self, inputs: Sequence[Any]) -> bool:
        """Tell whether each table has a kernel for the sizes of these inputs."""
        found = tuple(
            int(inputs[place] if dimension is None else inputs[place].shape[dimension])
            for place, dimension in self._places.values()
        )
        if found not in self._known:
            values = dict(zip(self._places, found, strict=True))
            self._known[found] = all(e.choice.covers(e.at(values)) for e in self._extents)
        return self._known[found]


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
