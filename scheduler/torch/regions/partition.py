"""Regions of a graph of ATen nodes that one kernel computes, the largest first.

A region grows from an anchor (a product, a convolution, attention, a reduction) along what reads
it. Of all ends that it may have, the latest is taken for which a template serves its program, the
last resorts left aside: their kernels are slow. What is read elsewhere is an output as well, such
as statistics of a norm, or the sum before an activation, that a backward graph reads.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace

from torch import fx

from tilewright.scheduler.dispatch.open_kernels import why_not_open
from tilewright.scheduler.dispatch.profile import PROBED
from tilewright.scheduler.torch.kernels.open_keys import family_of_key, is_open
from tilewright.scheduler.torch.regions.growth import (
    behind,
    grown,
    with_masks,
    with_producers,
    with_results,
)
from tilewright.scheduler.torch.regions.outputs import (
    closes_cycle,
    outputs_of,
    read_outside,
    shared_producer,
    trimmed,
)
from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.regions.sizes import copies, hints_of, open_text, why_no_open_text
from tilewright.scheduler.torch.translation.gap import Gap
from tilewright.scheduler.torch.translation.nodes import closure, descendants, fake
from tilewright.scheduler.torch.translation.program import Translation
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import kind_of
from tilewright.scheduler.torch.translation.views import moves_nothing
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import program_workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.workload import Workload

SLOW = {"staged", "divided", "staged_loops", "loops"}
"""The templates whose kernels are as slow as several kernels, or slower."""
SLOW_FOR_TWO = SLOW | {"kept", "windows"}
"""The same for a product of two outputs: its parts have faster kernels."""
MOST_TRIES = 6
"""The number of times that views behind operands that would be copied are taken in."""

Outputs = tuple[fx.Node, ...]
"""The nodes that a kernel writes, in the order of the graph."""


@dataclass(frozen=True)
class Refusal:
    """An anchor that no region has, and why not, in words."""

    anchor: fx.Node
    reason: str


@dataclass(frozen=True)
class Partition:
    """The regions of a graph; ``left`` are the nodes that torch computes beside them, free views
    left out, each with the reason.

    All nodes are of a copy of a graph that has symbolic sizes, in which they are those that it was
    captured with: ``origin`` has the graph's nodes by those of the copy. It is empty of other
    graphs, which are not copied.
    """

    regions: tuple[Region, ...]
    refusals: tuple[Refusal, ...]
    left: Mapping[fx.Node, str]
    origin: Mapping[fx.Node, fx.Node] = field(default_factory=dict)

    def in_graph(self, region: Region) -> Region:
        """Return a region with the nodes of the graph itself."""
        return region.moved(self.origin) if self.origin else region


def partition(graph: fx.Graph, target: Target) -> Partition:
    """Find the regions of ``graph`` that kernels compute on ``target``. The graph stays as it
    is."""
    hints = hints_of(graph)
    if not hints:
        return _Partitioning(graph, target).found()
    first, *others = copies(graph, hints)
    origin = first.origin
    places = [{made: each.nodes[node] for made, node in origin.items()} for each in others]
    return replace(_Partitioning(first.graph, target, places).found(), origin=origin)


class _Partitioning:
    """The search of regions, one anchor after the other: products first, then reductions. Of a
    graph of symbolic sizes it has one copy, and ``others`` are the nodes of further copies by those
    of this one."""

    def __init__(
        self, graph: fx.Graph, target: Target, others: Sequence[Mapping[fx.Node, fx.Node]] = ()
    ) -> None:
        self._graph, self._target, self._others = graph, target, others
        self._order = {node: place for place, node in enumerate(graph.nodes)}
        self._taken: set[fx.Node] = set()
        self._known: dict[str, Workload | str] = {}
        self._regions: list[Region] = []
        self._refusals: list[Refusal] = []

    def found(self) -> Partition:
        for kind in (Kind.PRODUCT, Kind.REDUCTION):
            for node in self._graph.nodes:
                if kind_of(node) is kind and node not in self._taken:
                    self._take(node, kind)
        return Partition(tuple(self._regions), tuple(self._refusals), self._left())

    def _take(self, anchor: fx.Node, kind: Kind) -> None:
        """Take the largest region of an anchor, or note why there is none."""
        reason = ""
        for outputs, nodes in self._ends(anchor, kind):
            made = self._region(nodes, outputs)
            if isinstance(made, Region):
                self._regions.append(made)
                self._taken |= nodes
                return
            reason = reason or made
        self._refusals.append(Refusal(anchor, reason or "its results are read one by one"))

    def _ends(self, anchor: fx.Node, kind: Kind) -> Iterator[tuple[Outputs, set[fx.Node]]]:
        """Yield the outputs that a region may have, those with the latest end first, with all
        nodes that it then has."""
        below = descendants(anchor)
        inside = grown(anchor, below, self._order, self._taken)
        extents = self._extents(inside, below | {anchor}, kind)
        ends = sorted(extents[-1][0], key=self._order.__getitem__, reverse=True)
        tried: list[set[fx.Node]] = []
        for end in (None, *ends):
            for within, own in extents:
                nodes = with_results(closure(end, within), within) if end else trimmed(within)
                outputs = outputs_of(nodes, own, self._order)
                if anchor not in nodes or nodes in tried or end not in (None, *outputs):
                    continue
                tried.append(nodes)
                needed = read_outside(within, own) if end else outputs
                cut = any(node is not end and node not in needed for node in outputs)
                if not cut and self._may_have(outputs, nodes):
                    yield outputs, nodes

    def _extents(
        self, inside: set[fx.Node], own: set[fx.Node], kind: Kind
    ) -> list[tuple[set[fx.Node], set[fx.Node]]]:
        """Return the nodes that a region may have, and those of them that it writes where others
        read them; first with what it shares with other readers."""
        if kind is Kind.PRODUCT:
            return [(inside, own)]
        inside = with_producers(inside, self._taken)
        found = [(inside, own)]
        shared = shared_producer(inside, self._taken, self._order)
        if shared is not None:
            found = [(with_producers(inside | {shared}, self._taken), own | {shared}), *found]
        return found

    def _may_have(self, outputs: Outputs, nodes: set[fx.Node]) -> bool:
        """Tell whether a region may have several outputs, if these are: kernels of dynamic sizes
        write one array, and those of products at most two, the sum and an activation."""
        if len(outputs) < 2:
            return bool(outputs)
        if _has_product(nodes) and len(outputs) > 2:
            return False
        return not (self._others or closes_cycle(nodes, outputs, self._regions))

    def _region(self, nodes: set[fx.Node], outputs: Outputs) -> Region | str:
        """Return the region, masks and the views behind its operands taken in as far as a template
        serves it then; or why there is none. A product whose kernels are slow then reads its
        operands as they are, if it has faster ones so."""
        reason, slow = "", None
        for started in with_masks(nodes):
            for translation in self._translations(started, outputs):
                if isinstance(translation, str):
                    reason = reason or translation
                    continue
                made = self._accepted(translation)
                if isinstance(made, Region) and self._is_fast(made):
                    return made
                if isinstance(made, Region):
                    slow = slow or made
                else:
                    reason = reason or made
        return slow or reason

    def _is_fast(self, region: Region) -> bool:
        """Tell whether a region is no product, or has a kernel that multiplies tiles."""
        if not _has_product(region.nodes):
            return True
        space = space_for(region.workload, self._target)
        return not space.templates.keys() <= SLOW_FOR_TWO

    def _translations(self, nodes: set[fx.Node], outputs: Outputs) -> Iterator[Translation | str]:
        """Yield the translations with less and less of what is behind operands that would be
        copied, and last the one with nothing of it, if that costs no copy."""
        found: list[Translation] = []
        within, reason = nodes, ""
        for _ in range(MOST_TRIES):
            within = behind(within)
            try:
                made = Translation(within, outputs)
            except Gap as gap:
                reason = str(gap)
                break
            found.append(made)
            copied = {node for node, array in made.operands.items() if array.copied}
            views = {node for node in copied if kind_of(node) is Kind.VIEW}
            if not views:
                break
            within = within | views
        yield from reversed(found)
        if not found:
            yield reason
        elif _has_product(nodes) and all(map(moves_nothing, found[0].nodes - nodes)):
            with suppress(Gap):
                plain = Translation(nodes, outputs)
                if not any(array.copied for array in plain.operands.values()):
                    yield plain

    def _accepted(self, translation: Translation) -> Region | str:
        """Return the region of a translation that a template serves, or why none does."""
        if not translation.reduces:
            return "it only moves elements"
        try:
            text = translation.text
        except Gap as gap:
            return str(gap)
        if text not in self._known:
            is_two = len(translation.outputs) > 1 and _has_product(translation.nodes)
            self._known[text] = self._served(text, is_two)
        workload = self._known[text]
        if isinstance(workload, str):
            return workload
        nodes = {array.name: node for node, array in translation.operands.items()}
        operands = tuple(nodes[array.name] for array in calling_of(workload).inputs)
        devices = {fake(node).device.type for node in (*operands, *translation.outputs)}
        if len(devices) > 1:
            return f"operands on {' and '.join(sorted(devices))}"
        copied = frozenset(n for n, array in translation.operands.items() if array.copied)
        about = (translation.nodes, translation.outputs, operands, copied, workload)
        return self._opened(Region(*about), text)

    def _opened(self, region: Region, text: str) -> Region | str:
        """Return the region with its open key, if sizes of the graph are symbolic; or why it has
        none."""
        if not self._others:
            return region
        try:
            moved = [region.moved(to) for to in self._others]
            texts = [Translation(each.nodes, each.outputs).text for each in moved]
        except Gap as gap:
            return str(gap)
        found = open_text([text, *texts])
        if found is None:
            return why_no_open_text([text, *texts])
        if not is_open(found):
            return region
        try:
            family = family_of_key(found)
        except InputError as error:
            return f"a dynamic size: {error}"
        if not family.independent and (reason := why_not_open(family, PROBED.last, self._target)):
            return f"a dynamic size: {reason}"
        return replace(region, open_key=found)

    def _served(self, text: str, is_two: bool) -> Workload | str:
        """Return the workload of a program that a template serves, or why none does; ``is_two`` if
        it is a product of two outputs."""
        try:
            workload = program_workload(text, {})
            if is_two and not workload.functions:
                return "a kernel of several outputs is worth it for functions alone"
            space = space_for(workload, self._target)
        except InputError as error:
            return str(error)
        if space.templates.keys() <= (SLOW_FOR_TWO if is_two else SLOW):
            return f"only {' and '.join(space.templates)} serves it"
        return workload

    def _left(self) -> dict[fx.Node, str]:
        """Return the nodes that torch computes, once regions stand for their outputs."""
        regions = {output: region for region in self._regions for output in region.outputs}
        refused = {refusal.anchor: refusal.reason for refusal in self._refusals}
        needed = set[fx.Node]()
        waiting = [node for node in self._graph.nodes if node.op == "output" or _changes(node)]
        while waiting:
            node = waiting.pop()
            if node in needed:
                continue
            needed.add(node)
            region = regions.get(node)
            waiting += region.operands if region else node.all_input_nodes
        left = [
            node
            for node in self._graph.nodes
            if node in needed
            and node.op == "call_function"
            and node not in regions
            and not _changes(node)
        ]
        return {node: refused.get(node) or _why(node) for node in left if not moves_nothing(node)}


def _has_product(nodes: Collection[fx.Node]) -> bool:
    return any(kind_of(node) is Kind.PRODUCT for node in nodes)


def _changes(node: fx.Node) -> bool:
    """Tell whether a node is there for what it changes, such as running statistics: its argument
    is then written in place."""
    return node.op == "call_function" and not node.users and node.is_impure()


def _why(node: fx.Node) -> str:
    return "no rule translates it" if kind_of(node) is None else "no region computes it"
