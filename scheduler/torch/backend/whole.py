"""Whole graphs that Inductor compiles with kernels in them and without: the faster one stays."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import fx

from tilewright.measure.memory import memory_limit
from tilewright.scheduler.dispatch.explaining import range_text
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.by_size import (
    BySize,
    Compiled,
    Sizes,
    by_halves,
    joined,
)
from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.backend.explanation import (
    OURS,
    TORCH,
    GraphReport,
    SpanReport,
)
from tilewright.scheduler.torch.backend.libraries import read_packed
from tilewright.scheduler.torch.backend.replacing import copied, with_kernels
from tilewright.scheduler.torch.regions.partition import Partition
from tilewright.scheduler.torch.regions.region import Region

SPAN_SECONDS = 20.0
"""Seconds after which a graph is timed at no further sizes; others are as the nearest of these."""
SLOWER = "the whole graph is slower with kernels"
Timed = Callable[[Mapping[Any, int]], judging.Times]
"""The times of a graph with kernels and without, for values of its symbols."""


class WholeGraph:
    """A graph that Inductor compiles with kernels for some of its regions; without any it is the
    ``spare`` one."""

    def __init__(
        self,
        module: fx.GraphModule,
        spare: fx.GraphModule,
        inputs: Sequence[Any],
        settings: Mapping[str, Any],
        report: GraphReport,
        found: Partition,
    ) -> None:
        self._module, self._spare, self._found = module, spare, found
        self.inputs, self._settings = inputs, settings
        self.report = report

    @property
    def is_inference(self) -> bool:
        """True if nothing is kept for a backward graph."""
        return self.report.kind == "inference"

    def compiled(self, choices: Sequence[Choice]) -> Callable[[list[Any]], Any]:
        """Return the graph with kernels for these regions."""
        return _inductor(self.module(choices), self.inputs, self._settings)

    def module(self, choices: Sequence[Choice]) -> fx.GraphModule:
        """Return a copy of the graph with kernels for these regions."""
        regions = [region for _, region in self._regions(choices)]
        if not regions:
            return copied(self._spare)
        made = with_kernels(self._module, regions)
        read_packed(made)
        return made

    def _regions(self, choices: Sequence[Choice]) -> list[tuple[Choice, Region]]:
        """Return the regions of choices with the nodes of the graph itself."""
        return [(c, self._found.in_graph(region)) for c in choices for region in c.regions]

    def limits(self, choices: Sequence[Choice]) -> dict[int, int]:
        """Return the limit of each input that kernels read as a table, or as lengths."""
        found: dict[fx.Node, int] = {}
        for _, region in self._regions(choices):
            found |= region.limits
        inputs = list(self._module.graph.find_nodes(op="placeholder"))
        return {place: found[node] for place, node in enumerate(inputs) if node in found}

    def chosen(self, choices: Sequence[Choice], judge: str) -> Any:
        """Return the graph with kernels for these regions, or without if that is faster; None where
        there are none."""
        report = self.report
        if not choices:
            report.why = _why_none([region.why for region in report.regions])
            return None
        report.by = OURS
        if judge == "always":
            return self.compiled(choices)
        if judging.size(self.inputs) > memory_limit() / 4:
            report.why = "too large to be compared as a whole"
            return self.compiled(choices)
        return self._faster(choices)

    def _faster(self, choices: Sequence[Choice]) -> Any:
        """Compile the graph with kernels and the one without; return the faster one. Symbolic sizes
        are those that the graph was captured with."""
        with aside() as ours_context:
            ours = self.compiled(choices)
        with aside() as plain_context:
            rival = self.compiled([])
        made = self.judged(ours, rival, choices)
        if made is not None:
            _adopt(ours_context)
            return made
        self.report.by, self.report.why = TORCH, SLOWER
        _adopt(plain_context)
        return rival

    def judged(self, ours: Compiled, rival: Compiled, choices: Sequence[Choice]) -> Compiled | None:
        """Time the compiled graph with kernels for some regions, and a ``rival``; return what calls
        the faster one at each size, or None if the rival is faster at all."""
        limits = self.limits(choices)

        def timed(values: Mapping[Any, int] = judging.NO_VALUES) -> judging.Times:
            with judging.running():
                return judging.in_turns(
                    lambda given: ours(list(given)),
                    lambda given: rival(list(given)),
                    [judging.like(self.inputs, limits, values)],
                )

        report, times = self.report, timed()
        report.ours_seconds, report.torch_seconds = times.ours, times.torch
        if not any(choice.is_open for choice in choices):
            return ours if times.gain >= 1 else None
        sizes = Sizes(self._module.graph, self.inputs, self._regions(choices))
        is_faster = self._faster_sizes(sizes, times, timed)
        return BySize(ours, rival, sizes) if is_faster else None

    def switched(
        self, then: Compiled, now: Compiled, choices: Sequence[Choice], judge: str
    ) -> Compiled | str:
        """Return the graph ``then`` with kernels, where it is to be called in the place of ``now``;
        or why it is not."""
        if judge == "always":
            return then
        if judging.size(self.inputs) > memory_limit() / 4:
            return "the graph is too large to be compared as a whole"
        with torch.no_grad():
            given = judging.like(self.inputs, self.limits(choices))
            results = [call(judging.copied(given)) for call in (then, now)]
        if not all(map(judging.alike, *results)):
            return "its result differs from torch's"
        return self.judged(then, now, choices) or SLOWER

    def _faster_sizes(self, sizes: Sizes, times: judging.Times, timed: Timed) -> bool:
        """Leave the sizes at which kernels are slower to the graph without; tell whether others
        remain. ``times`` are those of the captured sizes, and decide alone where a graph has
        several symbols."""
        if sizes.symbol is None:
            return times.gain >= 1
        most = memory_limit() / 4
        found = [(sizes.middle(span), span) for span in sizes.spans()]
        spans = {middle: span for middle, span in found if middle is not None}
        middles = [m for m in spans if judging.size(self.inputs, {sizes.symbol: m}) <= most]
        if not middles:
            return times.gain >= 1
        seconds: dict[int, judging.Times] = {}
        end = time.monotonic() + SPAN_SECONDS
        for place in by_halves(len(middles)):
            seconds[middles[place]] = timed({sizes.symbol: middles[place]})
            if time.monotonic() > end:
                break
        faster, self.report.spans = list[range](), []
        for middle, span in found:
            near = None if middle is None else min(seconds, key=lambda known: abs(known - middle))
            taken = near is not None and seconds[near].gain >= 1
            self.report.spans.append(_told(span, near, seconds, taken))
            (faster.append if taken else sizes.leave)(span)
        self.report.sizes = ", ".join(range_text(each[0], each[-1]) for each in joined(faster))
        return bool(faster)


def _told(
    span: range, size: int | None, seconds: Mapping[int, judging.Times], taken: bool
) -> SpanReport:
    """Return the report on a span of sizes, judged by the times at one ``size``."""
    if size is None:
        return SpanReport(span[0], span[-1], taken)
    times = (seconds[size].ours, seconds[size].torch)
    return SpanReport(span[0], span[-1], taken, size, ours_seconds=times[0], torch_seconds=times[1])


def _inductor(
    module: fx.GraphModule, inputs: Sequence[Any], settings: Mapping[str, Any]
) -> Callable[[list[Any]], Any]:
    from torch._inductor.compile_fx import compile_fx_inner

    made: Callable[[list[Any]], Any] = compile_fx_inner(module, inputs, **settings)
    return made


def compiled_aside(
    module: fx.GraphModule, inputs: Sequence[torch.Tensor]
) -> Callable[[list[Any]], Any]:
    """Return a piece of a graph, compiled for itself."""
    with aside():
        return _inductor(module, inputs, {"is_inference": True})


@contextmanager
def aside() -> Iterator[Any]:
    """Compile something that may not become part of what is being compiled: what Inductor notes
    about it goes to a context of its own, which is given."""
    from torch._guards import TracingContext, tracing

    outer = TracingContext.try_get()
    own = copy.copy(outer)
    if own is not None and own.output_strides is not None:
        own.output_strides = []
    with ExitStack() as stack:
        stack.enter_context(tracing(own))
        yield own


def _adopt(own: Any) -> None:
    """Note about the compilation what Inductor noted in a context of its own."""
    from torch._guards import TracingContext

    outer = TracingContext.try_get()
    if outer is not None and outer.output_strides is not None:
        outer.output_strides.extend(own.output_strides)


def _why_none(reasons: Sequence[str]) -> str:
    """Return why kernels compute none of the regions that were left to torch for these reasons."""
    if len(set(reasons)) == 1:
        return reasons[0]
    return "no region is left to kernels" if reasons else "it has no region"
