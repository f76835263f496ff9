"""Cut a graph of ATen nodes into units, which run as wholes, and these into blocks.

A unit is an operator that does much (a kernel, a product, a reduction, ...) with the pointwise
operators and views that follow it and wait for nothing later. What reads inputs and constants
alone, such as a transposed weight, is computed by each unit that reads it. A block has branches: a
unit that is ordered with all others divides blocks.
"""

from __future__ import annotations

import operator
from collections.abc import Iterable, Sequence, Set
from dataclasses import dataclass

import torch
from torch import fx

from tilewright.scheduler.torch.translation.nodes import closure, has_plain_shape, name_of
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import kind_of

LIGHT = {Kind.VIEW, Kind.POINTWISE, Kind.RESULT}


@dataclass(frozen=True)
class Piece:
    """Nodes as a graph of their own, which gives the tensors of ``outputs`` from those of
    ``inputs``."""

    module: fx.GraphModule
    inputs: tuple[fx.Node, ...]
    outputs: tuple[fx.Node, ...]


class Units:
    """The units of a graph, each after those that it waits for (``before``)."""

    def __init__(self, module: fx.GraphModule) -> None:
        self._module = module
        self.nodes: list[list[fx.Node]] = []
        self.before: list[set[int]] = []
        self.reached: list[set[int]] = []
        """All units that must have run, by way of others."""
        self._of: dict[fx.Node, int] = {}
        self._shared = set(module.graph.find_nodes(op="get_attr"))
        for node in module.graph.nodes:
            if node.op == "call_function":
                self._take(node)

    def _take(self, node: fx.Node) -> None:
        """Add a node to a unit, or begin one with it."""
        producers = {self._of[each] for each in node.all_input_nodes if each in self._of}
        light = node.target is operator.getitem or kind_of(node) in LIGHT
        if light and not producers and not _is_result(node):
            self._shared.add(node)
            return
        last = max(producers, default=-1)
        if not light or not producers or not producers - {last} <= self.reached[last]:
            last = len(self.nodes)
            self.nodes.append([])
            self.before.append(set())
            self.reached.append(set())
        self.nodes[last].append(node)
        self._of[node] = last
        self.before[last] |= producers - {last}
        for each in producers - {last}:
            self.reached[last] |= {each} | self.reached[each]

    def blocks(self) -> list[range]:
        """Return the units in runs: each that all others are ordered with by itself, and those in
        between together."""
        count = len(self.nodes)
        after = [sum(unit in each for each in self.reached) for unit in range(count)]
        found: list[range] = []
        begin = 0
        for unit in range(count):
            if len(self.reached[unit]) + after[unit] == count - 1:
                found += [range(begin, unit), range(unit, unit + 1)]
                begin = unit + 1
        return [block for block in [*found, range(begin, count)] if block]

    def piece(self, units: Iterable[int]) -> Piece:
        """Return units as a graph of their own."""
        nodes = sorted(node for unit in units for node in self.nodes[unit])
        return cut(self._module, nodes, self._shared)


def _is_result(node: fx.Node) -> bool:
    return any(user.op == "output" for user in node.users)


def cut(module: fx.GraphModule, nodes: Sequence[fx.Node], shared: Set[fx.Node]) -> Piece:
    """Return some nodes of a module's graph, in their order, as a graph of their own; nodes that
    are ``shared`` come along where they are read."""
    own = set(nodes)
    along = {
        each
        for node in nodes
        for source in node.all_input_nodes
        if source in shared
        for each in closure(source, shared)
    }
    graph = fx.Graph()
    env: dict[fx.Node, fx.Node] = {}
    every = sorted([*along, *nodes])
    inputs = dict.fromkeys(
        source
        for node in every
        for source in node.all_input_nodes
        if source not in own and source not in along
    )
    for place, node in enumerate(inputs):
        env[node] = graph.placeholder(f"input{place}")
        env[node].meta = {"val": node.meta["val"]}
    for node in every:
        env[node] = graph.node_copy(node, env.__getitem__)
    outputs = tuple(n for n in nodes if any(user not in own for user in n.users))
    graph.output(tuple(env[node] for node in outputs))
    return Piece(fx.GraphModule(module, graph), tuple(inputs), outputs)


def objection(graph: fx.Graph) -> str:
    """Return why parts of a graph cannot run side by side; nothing if they can."""
    for node in graph.nodes:
        if node.op == "call_function" and node.target is not operator.getitem:
            if not isinstance(node.target, torch._ops.OpOverload):
                return f"{name_of(node)} is no operator"
            if node.target._schema.is_mutable:
                return f"{name_of(node)} changes a tensor in place"
            if torch.Tag.nondeterministic_seeded in node.target.tags:
                return f"{name_of(node)} draws random numbers"
        elif node.op not in ("call_function", "placeholder", "get_attr", "output"):
            return f"it has a node of kind {node.op}"
        if node.op == "placeholder" and not has_plain_shape(node):
            return "it has a dynamic size"
    return ""
