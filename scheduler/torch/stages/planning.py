"""Divide a directed acyclic graph into stages: the dynamic program of IOS.

A stage is a set of nodes that all later ones may wait for. Its groups, which no edge joins, run
side by side, and the nodes of a group one after the other. The least cost of a set of nodes is that
of its best last stage (an *ending*: nodes that no other node of the set waits for) and the least
cost of the remaining nodes (Ding et al., "IOS: Inter-Operator Scheduler for CNN Acceleration",
MLSys 2021, algorithm 1). Sets of nodes are bits of whole numbers.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence, Set
from dataclasses import dataclass

from tilewright.spaces.errors import InputError

Group = tuple[int, ...]
"""Nodes that run one after the other, in their order."""
Stage = tuple[Group, ...]
"""Groups that run side by side, in the order of their first nodes."""
Cost = Callable[[Stage], float]
"""The seconds of a stage; it is asked once for each."""


@dataclass(frozen=True)
class Limits:
    """Stages that are considered: at most so many ``groups`` of at most so many ``nodes`` each (the
    paper's s and r). A graph with more sets of remaining nodes than ``sets``, or more endings of
    one, is refused."""

    groups: int
    nodes: int = 3
    sets: int = 4096


class TooWideError(InputError):
    """The graph has more sets of nodes than the limits allow."""


def planned(before: Sequence[Set[int]], cost: Cost, limits: Limits) -> list[Stage]:
    """Return the stages of least total cost, in the order in which they run. ``before`` has the
    nodes that each node waits for, all of them earlier ones. :class:`TooWideError` if there are too
    many possibilities."""
    graph = _Graph(before)
    least: dict[int, float] = {0: 0.0}
    last: dict[int, Stage] = {}
    costs: dict[Stage, float] = {}
    for nodes in sorted(_remaining(graph, limits)):  # a part is a smaller number than the whole
        for stage in endings(graph, nodes, limits):
            if stage not in costs:
                costs[stage] = cost(stage)
            rest = nodes & ~_members(stage)
            found = least[rest] + costs[stage]
            if nodes not in least or found < least[nodes]:
                least[nodes], last[nodes] = found, stage
    stages, nodes = [], graph.all
    while nodes:
        stages.append(last[nodes])
        nodes &= ~_members(last[nodes])
    return stages[::-1]


class _Graph:
    """The edges of a graph as bits."""

    def __init__(self, before: Sequence[Set[int]]) -> None:
        self.before = [_bits(each) for each in before]
        self.after = [
            _bits(later for later, each in enumerate(before) if node in each)
            for node in range(len(before))
        ]
        self.all = (1 << len(before)) - 1

    def sinks(self, nodes: int) -> Iterator[int]:
        """Yield the nodes that no other one of ``nodes`` waits for."""
        return (node for node in _nodes(nodes) if not self.after[node] & nodes)

    def joined(self, node: int) -> int:
        """Return the nodes that an edge joins to one."""
        return self.before[node] | self.after[node]


def _remaining(graph: _Graph, limits: Limits) -> set[int]:
    """Return the sets that are left when an ending has been taken from one of them, again and
    again; the empty one is not among them."""
    found, waiting = {graph.all}, [graph.all]
    while waiting:
        nodes = waiting.pop()
        for node in graph.sinks(nodes):
            rest = nodes & ~(1 << node)
            if rest and rest not in found:
                found.add(rest)
                waiting.append(rest)
        if len(found) > limits.sets:
            raise TooWideError(f"more than {limits.sets} sets of remaining nodes")
    return found - {0}


def endings(graph: _Graph, nodes: int, limits: Limits) -> Iterator[Stage]:
    """Yield the endings of a set of nodes that the limits allow, as stages."""
    seen, waiting = set[int](), [0]
    while waiting:
        ending = waiting.pop()
        for node in graph.sinks(nodes & ~ending):
            more = ending | 1 << node
            if more in seen:
                continue
            seen.add(more)
            if len(seen) > limits.sets:
                raise TooWideError(f"more than {limits.sets} sets of last nodes")
            stage = _groups(graph, more)
            if len(stage) <= limits.groups and all(len(group) <= limits.nodes for group in stage):
                yield stage
            if more.bit_count() < limits.groups * limits.nodes:
                waiting.append(more)


def _groups(graph: _Graph, nodes: int) -> Stage:
    """Return the parts of a set of nodes that no edge joins."""
    groups = []
    while nodes:
        group = waiting = nodes & -nodes
        while waiting:
            node = waiting.bit_length() - 1
            new = graph.joined(node) & nodes & ~group
            group |= new
            waiting = waiting & ~(1 << node) | new
        groups.append(tuple(_nodes(group)))
        nodes &= ~group
    return tuple(groups)


def _members(stage: Stage) -> int:
    return _bits(node for group in stage for node in group)


def _bits(nodes: Iterable[int]) -> int:
    return sum(1 << node for node in nodes)


def _nodes(bits: int) -> Iterator[int]:
    while bits:
        node = (bits & -bits).bit_length() - 1
        yield node
        bits &= bits - 1
