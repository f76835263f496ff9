"""Two ways of computing a part of a graph, which compete as they would run in the model.

Both are graphs that Inductor compiled. Constants of the model are constants there, too, so that
torch calls its libraries with the weights that it packed for them. Calls take turns on sets of
inputs and constants that change from call to call: no call finds in the caches what an earlier one
read.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.judging import Limits, Times
from tilewright.scheduler.torch.backend.libraries import repacked
from tilewright.scheduler.torch.translation.nodes import constant, fake
from tilewright.scheduler.turns import MOST_BYTES, sets_beyond

Compile = Callable[[fx.GraphModule, Sequence[torch.Tensor]], Callable[[list[Any]], Any]]
"""Inductor: from a graph and tensors without values to a function of a list of tensors."""


class Contender:
    """A part of a graph, compiled. It has copies of the constants, which other copies may
    replace."""

    def __init__(self, module: fx.GraphModule, compile: Compile) -> None:
        self._graph = module.graph
        nodes = self._graph.find_nodes(op="placeholder")
        self.names = [node.name for node in nodes]
        self.inputs = [fake(node) for node in nodes]
        with judging.running():
            self._constants = _with_own_constants(module)
        self._call = compile(module, self.inputs)
        known = {id(tensor) for tensor in self._constants.values()}
        made = getattr(self._call, "constants", None) or {}  # Inductor may pack constants itself
        self._constants |= {
            f"{name} of Inductor": tensor
            for name, tensor in made.items()
            if isinstance(tensor, torch.Tensor) and id(tensor) not in known
        }

    @property
    def bytes(self) -> int:
        """The bytes of inputs and constants."""
        return judging.size([*self.inputs, *self._constants.values()])

    @property
    def count(self) -> int:
        """The number of constants."""
        return len(self._constants)

    def copies(self) -> list[torch.Tensor]:
        """Return copies of the constants."""
        found = []
        for name, tensor in self._constants.items():
            packed = repacked(self._graph, name)
            found.append(tensor.clone() if packed is None else packed)
        return found

    def read(self, constants: Sequence[torch.Tensor]) -> None:
        """Let calls read these copies of the constants."""
        for tensor, copy in zip(self._constants.values(), constants, strict=True):
            tensor.data = copy

    def __call__(self, inputs: Sequence[torch.Tensor]) -> Any:
        """Compute the outputs of inputs."""
        return self._call(list(inputs))


def compete(
    ours: Contender, rival: Contender, cache_bytes: int, limits: Mapping[str, int]
) -> Times | None:
    """Return the times of two contenders of the same inputs; None if their results differ.
    ``limits`` are those of the whole numbers in inputs, by name."""
    by_place = {at: limits[name] for at, name in enumerate(ours.names) if name in limits}
    with judging.running():
        sets = _sets(ours, rival, cache_bytes, by_place)
        first, last = len(ours.inputs), len(ours.inputs) + ours.count

        def called(contender: Contender, given: Sequence[torch.Tensor]) -> Any:
            ours.read(given[first:last])  # by both, for it takes time
            rival.read(given[last:])
            return contender(given[:first])

        results = (called(ours, sets[0]), called(rival, sets[0]))
        if not all(map(judging.close, *results)):
            return None
        calls = (lambda given: called(ours, given), lambda given: called(rival, given))
        return judging.in_turns(*calls, sets)


def _sets(
    ours: Contender, rival: Contender, cache_bytes: int, limits: Limits
) -> list[list[torch.Tensor]]:
    """Return sets of inputs, and of constants of both: so many that what either reads has left the
    cache at its next turn, as far as memory allows."""
    least, most = sorted((ours.bytes, rival.bytes))
    count = min(sets_beyond(cache_bytes, least), MOST_BYTES // max(1, least + most))
    return [
        [*judging.like(ours.inputs, limits), *ours.copies(), *rival.copies()]
        for _ in range(max(2, count))
    ]


def _with_own_constants(module: fx.GraphModule) -> dict[str, torch.Tensor]:
    """Let a module have copies of its graph's constants, and return these by their names."""
    graph, found = module.graph, dict[str, torch.Tensor]()
    for name, node in {str(node.target): node for node in graph.find_nodes(op="get_attr")}.items():
        tensor = constant(node)
        if isinstance(tensor, torch.Tensor):
            packed = repacked(graph, name)
            own: Any = tensor.detach().clone() if packed is None else packed
            own._is_frozen_param = getattr(tensor, "_is_frozen_param", False)
            within, _, last = name.rpartition(".")
            holder = module.get_submodule(within)
            delattr(holder, last)
            holder.register_buffer(last, own, persistent=False)
            found[name] = own
    return found
