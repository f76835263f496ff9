"""Decide which products of one left factor are computed as one, with their weights joined.

Weights are constants only where Inductor's option ``freezing`` is on. Both ways compete as graphs
that Inductor compiled, each with the kernels that are best there. These graphs have what reads the
products as well, such as attention: it then reads columns of a longer row. Kernels that are not
built yet cannot compete: these products stay apart, and the next compilation decides.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from torch import fx
from torch._inductor import config as inductor_config

from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.backend.choosing import Choosing
from tilewright.scheduler.torch.backend.contenders import Compile, Contender, compete
from tilewright.scheduler.torch.backend.explanation import JoinReport
from tilewright.scheduler.torch.backend.libraries import read_packed
from tilewright.scheduler.torch.backend.options import Options
from tilewright.scheduler.torch.backend.replacing import cut, with_kernels
from tilewright.scheduler.torch.regions.joining import (
    Products,
    columns_of,
    join,
    products_of_one_factor,
)
from tilewright.scheduler.torch.regions.outputs import gives_several
from tilewright.scheduler.torch.regions.partition import Partition, partition
from tilewright.scheduler.torch.regions.region import Region
from tilewright.scheduler.torch.translation.nodes import descendants, shape
from tilewright.scheduler.torch.translation.products import factors_of
from tilewright.scheduler.torch.translation.rules import Kind
from tilewright.scheduler.torch.translation.table import kind_of


@dataclass(frozen=True)
class Joins:
    """Reports on all products of a graph that may be joined, and the choices whose kernels are to
    be built before it is known where that is faster."""

    reports: Sequence[JoinReport] = ()
    later: Sequence[Choice] = ()


def join_where_faster(module: fx.GraphModule, options: Options, choosing: Choosing) -> Joins:
    """Join products of a graph where that is faster. Nothing is where constants may be
    exchanged."""
    groups = products_of_one_factor(module.graph)
    if not (groups and inductor_config.freezing):
        return Joins()
    found = partition(module.graph, choosing.target)
    if found.origin:  # sizes are symbolic
        return Joins()
    reports: dict[Any, JoinReport] = {}
    taken, later = [], list[Choice]()
    for products in groups:
        block = _around(products, found)
        if block.about in reports:
            reports[block.about].places += 1
        else:
            reports[block.about] = _judged(block, options, choosing, later)
        if reports[block.about].taken:
            taken.append(products)
    with judging.running():
        for products in taken:
            join(module.graph, products)
    module.recompile()
    return Joins(tuple(reports.values()), tuple(later))


@dataclass(frozen=True)
class _Block:
    """Products of one left factor, and the regions of them and of what reads them as it is; their
    ``nodes`` have those on the way."""

    products: Products
    regions: tuple[Region, ...]
    nodes: frozenset[fx.Node]

    @property
    def about(self) -> Any:
        """A value that equal blocks have in common."""
        return columns_of(self.products), tuple(region.key for region in self.regions)

    def report(self) -> JoinReport:
        """Return a report on products that stay apart."""
        rows, depth = shape(factors_of(self.products[0])[0])
        return JoinReport(rows, depth, columns_of(self.products))

    def cut(self, joined: bool) -> fx.GraphModule:
        """Return the nodes as a graph of their own, whose module shares the constants; with the
        products ``joined``, if that is asked for."""
        below = {*self.products}.union(*map(descendants, self.products))
        nodes = [node for node in self.products[0].graph.nodes if node in self.nodes & below]
        ends = [n for n in nodes if any(user not in self.nodes for user in n.users)]
        made, env = cut(self.nodes, ends)
        if joined:
            with judging.running():
                join(made.graph, tuple(env[node] for node in self.products))
            made.recompile()
        return made


def _around(products: Products, found: Partition) -> _Block:
    """Return the block of products in a graph with these regions."""
    homes = {node: region for region in found.regions for node in region.nodes}
    nodes, regions = set[fx.Node](), dict[fx.Node, Region]()
    waiting = list(products)
    while waiting:
        node = waiting.pop()
        region = homes.get(node)
        if region is not None:
            regions[region.outputs[0]] = region
        nodes |= region.nodes if region else {node}
        if node in products or kind_of(node) is Kind.VIEW or gives_several(node):
            waiting += (user for user in node.users if user.op == "call_function")
    ordered = tuple(regions[node] for node in products[0].graph.nodes if node in regions)
    return _Block(products, ordered, frozenset(nodes))


def _judged(block: _Block, options: Options, choosing: Choosing, later: list[Choice]) -> JoinReport:
    """Return the report on products that are joined if that is faster, or asked for; kernels that
    are still to be built go to ``later``."""
    report = block.report()
    if options.judge == "always":
        report.taken = True
        return report
    cuts = [block.cut(joined) for joined in (True, False)]
    chosen = [choosing.chosen(partition(cut.graph, choosing.target).regions) for cut in cuts]
    if any(choice.later for choices in chosen for choice in choices):
        report.later = True
        later += [choice for choice in chosen[0] if choice.later]
        return report
    ways = zip(cuts, chosen, strict=True)
    joined, apart = (_contender(cut, choices, choosing.compile) for cut, choices in ways)
    read = [limits for region in block.regions for limits in region.limits.items()]
    limits = {node.name: limit for node, limit in read}
    times = compete(joined, apart, judging.cache_bytes(choosing.target), limits)
    if times is not None:
        report.gain, report.taken = times.gain, times.wins
    return report


def _contender(module: fx.GraphModule, choices: Sequence[Choice], compile: Compile) -> Contender:
    """Return a graph with the kernels that are best in it, compiled."""
    made = with_kernels(module, [r for each in choices if each.ours for r in each.regions])
    read_packed(made)
    return Contender(made, compile)
