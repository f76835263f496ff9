"""The backend of ``torch.compile(model, backend="tilewright")``: Inductor, with kernels in the
place of those regions of each graph that they compute faster.

Inductor calls back for each graph of ATen nodes, of inference or of training. There regions are
found, chosen and replaced; then Inductor compiles the graph as it would any other. Whatever fails
here is warned of once, and Inductor compiles the graph alone.
"""

from __future__ import annotations

import copy
import logging
import time
import warnings
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import fx

from tilewright.measure.database import Database
from tilewright.measure.memory import memory_limit
from tilewright.scheduler.opening import opened
from tilewright.scheduler.torch import judging
from tilewright.scheduler.torch.choosing import Choice, Choosing
from tilewright.scheduler.torch.explanation import (
    OURS,
    TORCH,
    Explanation,
    GraphReport,
    explanation_of_caller,
)
from tilewright.scheduler.torch.nodes import name_of
from tilewright.scheduler.torch.operator_functions import functions
from tilewright.scheduler.torch.options import Options, options_of
from tilewright.scheduler.torch.partition import Partition, partition
from tilewright.scheduler.torch.replacing import copied, replace_regions
from tilewright.scheduler.torch.weights import read_plain
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
    """Compile a graph that Dynamo captured; :mod:`scheduler.torch.options` has the options."""
    from torch._functorch import config as functorch_config
    from torch._inductor.compile_fx import compile_fx

    try:
        asked = options_of(options, mode)
    except InputError as error:
        raise _unwrapped(error) from None
    inner = _Compiler(asked, explanation_of_caller())
    patches: dict[str, Any] = {"enable_autograd_cache": False}  # it would pass over the choice
    known = {name: value for name, value in patches.items() if hasattr(functorch_config, name)}
    with functorch_config.patch(known):
        return compile_fx(
            module, list(inputs), inner_compile=inner, config_patches=dict(asked.others)
        )


def _unwrapped(error: InputError) -> Exception:
    """The same error as one that Dynamo hands on as it is."""
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
            _warn(error)
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
        """The compiled graph with kernels in it; None if torch is to compute all of it. ``spare``
        is a copy of the graph, which stays as it is."""
        target = _target_of(module.graph)
        if target is None:
            report.why = "its tensors are on no device that has kernels, or on several"
            return None
        functions.database = self._options.db
        read_plain(module)
        with _database(self._options) as database:
            found = partition(module.graph, target)
            choosing = Choosing(target, self._options, database, _compiled)
            choices = choosing.chosen(found.regions)
        _tell(report, found, choices)
        regions = [region for choice in choices if choice.open for region in choice.regions]
        if not regions:
            report.why = "no region is faster by kernels" if found.regions else "it has no region"
            return None
        plain = copied(spare)
        replace_regions(module, regions)
        report.by = OURS
        if self._options.judge == "always" or _is_dynamic(inputs):
            return _inductor(module, inputs, settings)
        if judging.size(inputs) > memory_limit() / 4:
            report.why = "too large to be compared as a whole"
            return _inductor(module, inputs, settings)
        return _faster(module, plain, inputs, settings, report)


def _faster(
    module: fx.GraphModule,
    plain: fx.GraphModule,
    inputs: Sequence[Any],
    settings: Mapping[str, Any],
    report: GraphReport,
) -> Any:
    """Compile the graph with kernels and the one without; return the faster one."""
    with _aside() as ours_context:
        ours = _inductor(module, inputs, settings)
    with _aside() as plain_context:
        rival = _inductor(plain, inputs, settings)
    with judging.running():
        times = judging.in_turns(
            lambda given: ours(list(given)),
            lambda given: rival(list(given)),
            [judging.like(inputs)],
        )
    report.gain = times.gain
    if times.gain >= 1:
        _adopt(ours_context)
        return ours
    report.by, report.why = TORCH, "the whole graph is slower with kernels"
    _adopt(plain_context)
    return rival


def _inductor(
    module: fx.GraphModule, inputs: Sequence[Any], settings: Mapping[str, Any]
) -> Callable[[list[Any]], Any]:
    from torch._inductor.compile_fx import compile_fx_inner

    made: Callable[[list[Any]], Any] = compile_fx_inner(module, inputs, **settings)
    return made


def _compiled(module: fx.GraphModule, inputs: Sequence[torch.Tensor]) -> Callable[[list[Any]], Any]:
    """A piece of a graph, compiled for itself."""
    with _aside():
        return _inductor(module, inputs, {"is_inference": True})


@contextmanager
def _aside() -> Iterator[Any]:
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


@contextmanager
def _database(options: Options) -> Iterator[Database | None]:
    """The database of the options; None where none is wanted."""
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
    """The target of a graph's device, with as many threads as torch uses; None if it has none."""
    tensors = [node.meta.get("val") for node in graph.nodes]
    kinds = {each.device.type for each in tensors if isinstance(each, torch.Tensor)}
    if len(kinds) != 1:
        return None
    (kind,) = kinds
    if kind == "cpu":
        return detect_target("cpu", torch.get_num_threads())
    return detect_target("cuda") if kind == "cuda" else None


def _is_dynamic(inputs: Sequence[Any]) -> bool:
    """True if some input is a symbolic number, or has a symbolic size."""
    return any(
        not isinstance(each, torch.Tensor) or any(not isinstance(n, int) for n in each.shape)
        for each in inputs
    )


def _warn(error: Exception) -> None:
    reason = " ".join(str(error).split())[:150]
    warnings.warn(
        f"tilewright leaves a graph to Inductor: {type(error).__name__}: {reason}",
        RuntimeWarning,
        stacklevel=2,
    )
