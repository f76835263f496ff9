"""Steps of one graph: pieces compiled for the threads of a group, with tensors for all values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod
from typing import Any

import torch
from torch import fx

from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.stages.pieces import compiled, lies
from tilewright.scheduler.torch.stages.running import Side, Step, Streams, threads
from tilewright.scheduler.torch.stages.units import Piece
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

NONE: Mapping[fx.Node, Any] = {}


class Steps:
    """Makes the steps of a graph on a target. ``values`` has a tensor for each input, and for each
    output of a piece as it lies after the piece has run."""

    def __init__(self, graph: fx.Graph, example: Sequence[torch.Tensor], target: Target) -> None:
        self.threads = target.threads if isinstance(target, CpuTarget) else 0
        self.values: dict[fx.Node, torch.Tensor] = {}
        self.places: dict[fx.Node, int] = {}
        """The place of each value among those of a run."""
        for node, tensor in zip(graph.find_nodes(op="placeholder"), example, strict=True):
            self._put(node, tensor)

    def _put(self, node: fx.Node, tensor: torch.Tensor) -> None:
        self.places.setdefault(node, len(self.places))
        self.values[node] = tensor

    @property
    def on_gpu(self) -> bool:
        """True if groups run in streams."""
        return not self.threads

    def side(self, groups: int) -> Side:
        """Return what runs so many groups side by side."""
        return Streams() if self.on_gpu else threads(groups, self.share(groups))

    def share(self, groups: int) -> int:
        """Return the threads of each of so many groups; 0 on a GPU."""
        return max(1, self.threads // groups) if self.threads else 0

    def step(self, piece: Piece, groups: int, strides: Mapping[fx.Node, Any] = NONE) -> Step:
        """Return a piece for one of so many groups, after a run that shows how its outputs lie:
        those that have ``strides`` must lie so."""
        function, found = self._run(piece, groups, NONE)
        wrong = {
            node: strides[node]
            for node, tensor in found.items()
            if node in strides and not lies(tensor, strides[node])
        }
        if wrong:
            function, found = self._run(piece, groups, wrong)
        if not all(lies(found[node], wanted) for node, wanted in wrong.items()):
            raise InputError("an output lies in memory as no piece can write it")
        for node, tensor in found.items():
            self._put(node, tensor)
        return Step(
            function,
            tuple(self.places[node] for node in piece.inputs),
            tuple(self.places[node] for node in piece.outputs),
        )

    def _run(self, piece: Piece, groups: int, strides: Mapping[fx.Node, Any]) -> Any:
        """Return the compiled piece, and what it gives."""
        function = compiled(piece, self.values, self.share(groups), strides)
        with judging.running():
            results = function([self.values[node] for node in piece.inputs])
        return function, dict(zip(piece.outputs, results, strict=True))


def like_a_model(inputs: Sequence[Any]) -> list[Any]:
    """Return tensors like these whose values stay of one size from layer to layer: vectors are near
    one, what has more dimensions is small."""
    made = judging.like(inputs)
    for tensor in made:
        if isinstance(tensor, torch.Tensor) and tensor.is_floating_point():
            if tensor.dim() > 1:
                tensor.mul_(prod(tensor.shape[1:]) ** -0.5)
            else:
                tensor.uniform_(0.5, 1.5)
    return made
