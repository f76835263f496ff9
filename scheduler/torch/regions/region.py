"""A region of a graph: nodes that one kernel computes, and how it is called."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from torch import fx

from tilewright.scheduler.torch.kernels.functions import key_of
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class Weight:
    """A constant operand, a matrix of this ``shape``, that a kernel reads packed; its transpose if
    it is ``turned``."""

    node: fx.Node
    shape: tuple[int, ...]
    turned: bool


@dataclass(frozen=True)
class Region:
    """Nodes that one kernel computes.

    ``operands`` are in the order in which a function of ``workload`` takes its arrays, and
    ``outputs`` in that of its results. An array lacks dimensions of one element, and may have one
    dimension for several neighbours, so a tensor is viewed in the array's shape before the call,
    and a result in the node's. ``copies`` are operands that no
    declaration describes: they are converted to the array's dtype and made contiguous first.
    ``nodes`` are those whose work the kernel does, free views among them. A ``weight`` is read
    packed. In a graph of symbolic sizes ``workload`` has the sizes that it was captured with, and
    ``open_key`` is the key of those of all sizes.
    """

    nodes: frozenset[fx.Node]
    outputs: tuple[fx.Node, ...]
    operands: tuple[fx.Node, ...]
    copies: frozenset[fx.Node]
    workload: Workload
    weight: Weight | None = None
    open_key: str = ""

    @property
    def key(self) -> str:
        """The text that a compiled graph holds of it."""
        return self.open_key or key_of(self.workload)

    @property
    def limits(self) -> dict[fx.Node, int]:
        """The limit below which the whole numbers of each operand are that is a table, or has
        lengths."""
        drawn = {o.name: o.drawn.below for o in self.workload.written.operands if o.drawn}
        arrays = calling_of(self.workload).inputs
        pairs = zip(self.operands, arrays, strict=True)
        return {node: drawn[array.name] for node, array in pairs if array.name in drawn}

    def moved(self, to: Mapping[fx.Node, fx.Node]) -> Region:
        """Return the same region of a copy of its graph, whose nodes are given by those of this
        one."""
        return replace(
            self,
            nodes=frozenset(map(to.__getitem__, self.nodes)),
            outputs=tuple(map(to.__getitem__, self.outputs)),
            operands=tuple(map(to.__getitem__, self.operands)),
            copies=frozenset(map(to.__getitem__, self.copies)),
            weight=self.weight and replace(self.weight, node=to[self.weight.node]),
        )
