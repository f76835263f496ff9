"""The backend of ``torch.compile(model, backend="tilewright")``: Inductor, with kernels in the
place of those regions of each graph that they compute faster.

Inductor calls back for each graph of ATen nodes, of inference or of training. There regions are
found, chosen and replaced; then Inductor compiles the graph as it would any other. Whatever fails
here is warned of once, and Inductor compiles the graph alone.
"""

from __future__ import annotations

import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from typing import Any

import torch
from torch import fx

from tilewright.measure.database import Database
from tilewright.scheduler.opening import opened
from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.backend.choosing import Choosing
from tilewright.scheduler.torch.backend.contenders import Compile
from tilewright.scheduler.torch.backend.explanation import (
    OURS,
    TORCH,
    Explanation,
    GraphReport,
    explanation_of_caller,
)
from tilewright.scheduler.torch.backend.joins import join_where_faster
from tilewright.scheduler.torch.backend.libraries import read_plain
from tilewright.scheduler.torch.backend.options import Options, options_of
from tilewright.scheduler.torch.backend.recording import record_graph
from tilewright.scheduler.torch.backend.replacing import copied
from tilewright.scheduler.torch.backend.switching import Switching
from tilewright.scheduler.torch.backend.whole import WholeGraph, aside, compiled_aside
from tilewright.scheduler.torch.kernels.building import Wanted, build_later
from tilewright.scheduler.torch.kernels.functions import functions
from tilewright.scheduler.torch.operator.definition import put_wanted
from tilewright.scheduler.torch.regions.partition import Partition, partition
from tilewright.scheduler.torch.translation.nodes import name_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target, detect_target

log = logging.getLogger("tilewright")


def tilewright(
    module: fx.GraphModule,
    inputs: Sequence[Any],
    *,
    options: Mapping[str, Any] | None = None,
    mode: str | None = None,
) -> Callable[..., Any]:
    """Compile a graph that Dynamo captured; :mod:`scheduler.torch.backend.options` has the
    options."""
    from torch._functorch import config as functorch_config
    from torch._inductor.compile_fx import compile_fx

    try:
        asked = options_of(options, mode)
    except InputError as error:
        raise _unwrapped(error) from None
    inner = _Compiler(asked, explanation_of_caller())
    patches: dict[str, Any] = {"enable_autograd_cache": False}  # it would pass over the choice
    if asked.activations is not None:
        patches["activation_memory_budget"] = float(asked.activations)
    known = {name: value for name, value in patches.items() if hasattr(functorch_config, name)}
    with functorch_config.patch(known):
        return compile_fx(
            module, list(inputs), inner_compile=inner, config_patches=dict(asked.others)
        )


def _unwrapped(error: InputError) -> Exception:
    """Return the same error as one that Dynamo hands on as it is."""
    from torch._dynamo import exc

    kind: Any = type("OptionError", (exc.ShortenTraceback, InputError), {})
    made: Exception = kind(str(error), first_useful_frame=None)
    return made


class _Compiler:
    """Inductor's compiler of one graph of ATen nodes, with regions replaced."""

    def __init__(self, options: Options, explanation: Explanation) -> None:
        self._options, self._explanation = options, explanation

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any], **settings: Any) -> Any:
        from torch._inductor.compile_fx import compile_fx_inner

        report = GraphReport(_kind(settings))
        self._explanation.graphs.append(report)
        began = time.monotonic()
        spare = copied(module)
        try:
            made = self._with_kernels(module, spare, inputs, settings, report)
        except Exception as error:  # a fault of ours must not keep a model from running
            warn_of(error)
            report.by, report.why = TORCH, f"{type(error).__name__}: {error}"
            made = None
        if made is None:
            made = compile_fx_inner(spare, inputs, **settings)
        report.seconds = time.monotonic() - began
        log.info("torch.compile: %s", report.line)
        return made

    def _with_kernels(
        self,
        module: fx.GraphModule,
        spare: fx.GraphModule,
        inputs: Sequence[Any],
        settings: Mapping[str, Any],
        report: GraphReport,
    ) -> Any:
        """Return the compiled graph with kernels in it; None if torch is to compute all of it.
        ``spare`` is a copy of the graph, which stays as it is."""
        found = choose(module, self._options, report, compiled_aside)
        if found is None:
            return None
        graph = WholeGraph(module, spare, inputs, settings, report, found.partition)
        made = graph.chosen([c for c in found.choices if c.ours], self._options.judge)
        self._record(report, found)
        if found.joins_later:
            build_later(found.wanted(found.joins_later), self._options.db, put_wanted)
        if found.later:
            return self._with_later(graph, made, found)
        wanted = self._options.stages == "measure" and graph.is_inference
        return self._with_stages(graph, made, found) if wanted else made

    def _record(self, report: GraphReport, found: Chosen) -> None:
        """Keep how fast the graph is as a whole."""
        with _database(self._options) as database:
            if database is not None:
                about = (self._explanation.model, report, found.choices)
                record_graph(database, found.target, *about)

    def _with_stages(self, graph: WholeGraph, made: Any, found: Chosen) -> Any:
        """Return the graph as it is ``made``, or as stages if these are faster."""
        from tilewright.scheduler.torch.stages.staging import staged

        choices = [c for c in found.choices if c.ours] if graph.report.by == OURS else []
        whole = made or graph.compiled([])
        with _database(self._options) as database:
            about = (graph.inputs, whole, found.target, database, graph.report)
            return staged(graph.module(choices), *about)

    def _with_later(self, graph: WholeGraph, made: Any, found: Chosen) -> Any:
        """Return the graph as it is ``made`` until all kernels are built, and then with all of
        them, if that is faster. Graphs of training wait for the next compilation."""
        wanted = found.wanted(found.later)
        if not graph.is_inference:
            build_later(wanted, self._options.db, put_wanted)
            return made
        now = made or graph.compiled([])
        with aside():
            every = [c for c in found.choices if c.ours or c.later]
            then = graph.compiled(every)
        switching = Switching(now)
        switch = partial(graph.switched, then, now, every, self._options.judge)
        record = partial(self._record, graph.report, found)
        about = (graph.report, self._options.db)
        switching.follow(wanted, found.later, *about, switch, record)
        return switching


@dataclass(frozen=True)
class Chosen:
    """The regions of a graph with who computes them on a target, and the ``place`` of functions: a
    kind of target and a number of threads."""

    partition: Partition
    choices: Sequence[Choice]
    place: tuple[str, int]
    target: Target
    joins_later: Sequence[Choice] = ()
    """The choices whose kernels the next compilation may call, if products are joined."""

    @property
    def later(self) -> list[Choice]:
        """The choices whose kernels are still to be built."""
        return [choice for choice in self.choices if choice.later]

    def wanted(self, choices: Sequence[Choice]) -> list[Wanted]:
        """Return what is to be built for choices."""
        return [Wanted(choice.key, *self.place) for choice in choices]


def choose(
    module: fx.GraphModule, options: Options, report: GraphReport, compile: Compile
) -> Chosen | None:
    """Find the regions of a graph and let them compete; None where there is no target. Calls
    of torch's libraries become others on the way (:func:`libraries.read_plain`), and products may
    be joined."""
    target = _target_of(module.graph)
    if target is None:
        report.why = "its tensors are on no device that has kernels, or on several"
        return None
    functions.database = options.db
    read_plain(module)
    with _database(options) as database:
        choosing = Choosing(target, options, database, compile)
        joins = join_where_faster(module, options, choosing)
        found = partition(module.graph, target)
        choices = choosing.chosen(found.regions)
    report.joins = list(joins.reports)
    _tell(report, found, choices)
    return Chosen(found, choices, choosing.place, target, joins.later)


@contextmanager
def _database(options: Options) -> Iterator[Database | None]:
    """Open the database of the options; None where none is wanted."""
    if options.db is None:
        yield None
        return
    with opened(options.db) as database:
        yield database


def _tell(report: GraphReport, found: Partition, choices: Sequence[Choice]) -> None:
    report.regions = [choice.report for choice in choices]
    report.left = Counter((name_of(node), why) for node, why in found.left.items())


def _kind(settings: Mapping[str, Any]) -> str:
    if settings.get("is_backward"):
        return "backward"
    return "inference" if settings.get("is_inference") else "forward"


def _target_of(graph: fx.Graph) -> Target | None:
    """Return the target of a graph's device, with as many threads as torch uses; None if it has
    none."""
    tensors = [node.meta.get("val") for node in graph.nodes]
    kinds = {each.device.type for each in tensors if isinstance(each, torch.Tensor)}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind == "cpu":
        return detect_target("cpu", torch.get_num_threads())
    return detect_target("cuda") if kind == "cuda" else None


def warn_of(error: Exception) -> None:
    """Warn that a graph is Inductor's alone, and why."""
    reason = " ".join(str(error).split())[:150]
    warnings.warn(
        f"tilewright leaves a graph to Inductor: {type(error).__name__}: {reason}",
        RuntimeWarning,
        stacklevel=2,
    )
