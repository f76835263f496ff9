"""The graphs of a module as the pass of the backend sees them, without memory for its weights.

Inductor prepares each graph as it does for the backend, and hands it to a compiler that keeps it
and compiles nothing. Weights and inputs become fake tensors first, so models on ``meta`` are
welcome, and no kernel runs.
"""

from __future__ import annotations

import copy
import logging
import warnings
from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, nullcontext
from dataclasses import dataclass
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensor, FakeTensorMode
from torch.utils import _pytree as pytree

from tilewright.scheduler.torch.extraction.blame import failed
from tilewright.scheduler.torch.extraction.freezing import constant_weights
from tilewright.scheduler.torch.extraction.shards import sharded_like
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

CAPTURES = 1 << 10
"""Graphs of one function that Dynamo may make, before it gives up."""


INFERENCE, FORWARD, BACKWARD = "", "forward", "backward"
"""The parts of a step that graphs compute; that of inference needs no name."""


@dataclass(frozen=True)
class Captured:
    """A graph with its constants, and the part of a step that it computes. Weights are constants
    of a ``frozen`` graph."""

    module: fx.GraphModule
    part: str
    frozen: bool

    @property
    def graph(self) -> fx.Graph:
        """The graph of ATen nodes."""
        return self.module.graph


def captured(
    module: torch.nn.Module,
    args: Sequence[Any],
    target: Target,
    kwargs: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
) -> list[fx.Graph]:
    """Return the graphs of a call of ``module`` for inference: see :func:`captured_parts`."""
    return [each.graph for each in captured_parts(module, args, target, kwargs, dtype)]


def captured_parts(
    module: torch.nn.Module,
    args: Sequence[Any],
    target: Target,
    kwargs: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
    training: bool = False,
    frozen: bool = False,
) -> list[Captured]:
    """Return the graphs of a call of ``module`` on a device like that of ``target``: those of
    inference, or the forward and the backward ones of ``training``, as AOTAutograd divides them.
    All tensors of floating point are taken for ``dtype``, if one is given. Weights of ``frozen``
    graphs of inference are constants without values.

    Raises :class:`InputError` for a module that cannot be captured, with the line of its code, and
    for ``frozen`` graphs of a device that is not here: Inductor freezes for the device at hand.
    """
    from torch._dynamo import config as dynamo_config

    graphs: list[Captured] = []
    mode, device = FakeTensorMode(allow_non_fake_inputs=True), _device(target)
    if frozen and device != target.kind:
        raise InputError(f"frozen weights are for devices that are here; {target.kind} is not")
    fakes = _Fakes(mode, device, dtype)
    model = fakes.module(module)
    if training:
        model.train()
    given, named = fakes.tree(tuple(args)), fakes.tree(dict(kwargs or {}))
    settings = {
        "automatic_dynamic_shapes": False,
        "recompile_limit": CAPTURES,
        "accumulated_recompile_limit": CAPTURES,
    }
    known = {name: value for name, value in settings.items() if hasattr(dynamo_config, name)}
    compiled = torch.compile(model, backend=_Backend(graphs, frozen), dynamic=False)
    try:
        with ExitStack() as stack:
            stack.enter_context(_silence())
            stack.enter_context(dynamo_config.patch(**known))
            stack.enter_context(constant_weights() if frozen else nullcontext())
            stack.enter_context(mode)
            stack.enter_context(torch.set_grad_enabled(training))
            compiled(*given, **named)
            if not graphs:  # torch compiles no such frame any more, once there were too many
                torch._dynamo.reset()
                compiled(*given, **named)
    except Exception as error:  # anything that the user's code, or a graph break, may raise
        raise failed(error) from error
    return graphs


def _device(target: Target) -> str:
    """Return the kind of device of the fake tensors. Without a GPU, torch has fake ones of CPUs
    alone: kernels for GPUs compute the same."""
    found = getattr(torch, target.kind, None)
    return target.kind if found is not None and found.is_available() else "cpu"


@contextmanager
def _silence() -> Iterator[None]:
    """Keep torch from logging what is raised, or what the user has asked for, and from warnings
    about the code that it traces."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(before)


class _Backend:
    """A backend for ``torch.compile`` that keeps graphs. What it was given gives the fake tensors
    that Dynamo found, and does not run again."""

    def __init__(self, graphs: list[Captured], frozen: bool) -> None:
        self._graphs, self._frozen = graphs, frozen

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        from torch._functorch import config as functorch_config
        from torch._inductor.compile_fx import compile_fx

        patches: dict[str, Any] = {"enable_autograd_cache": False}  # it would pass over the graphs
        patches |= {"force_non_lazy_backward_lowering": True}  # no call needs it before it is kept
        known = {name: value for name, value in patches.items() if hasattr(functorch_config, name)}
        with functorch_config.patch(known):
            compile_fx(module, list(inputs), inner_compile=self._keep)
        return _known(module)

    def _keep(self, module: fx.GraphModule, inputs: Sequence[Any], **settings: Any) -> Any:
        self._graphs.append(Captured(module, part_of(settings), self._frozen))
        return module.forward


def _known(module: fx.GraphModule) -> Any:
    """Return a function that gives the outputs of a graph without running it, if they are known."""
    (output,) = module.graph.find_nodes(op="output")
    meta = (node.meta if isinstance(node, fx.Node) else {} for node in output.args[0])
    found = [each.get("example_value") for each in meta]
    if all(isinstance(each, FakeTensor) for each in found):
        return lambda *_: found
    return module.forward


def part_of(settings: Mapping[str, Any]) -> str:
    """Return the part of a step that a graph computes, by Inductor's settings for its
    compilation."""
    if settings.get("is_backward"):
        return BACKWARD
    return INFERENCE if settings.get("is_inference") else FORWARD


class _Fakes:
    """Fake tensors in place of real ones, each made once, on one device, and all of
    floating point in one dtype, if it is given."""

    def __init__(self, mode: FakeTensorMode, device: str, dtype: torch.dtype | None) -> None:
        self._mode, self._device, self._dtype = mode, device, dtype
        self._made: dict[int, Any] = {}

    def module(self, module: torch.nn.Module) -> torch.nn.Module:
        """Return a copy of a module whose tensors are fake."""
        memo = {id(tensor): self._fake(tensor) for tensor in _tensors(module)}
        return copy.deepcopy(module, memo)

    def tree(self, given: Any) -> Any:
        """Return the same structure with fake tensors."""
        return pytree.tree_map_only(torch.Tensor, self._fake, given)

    def _fake(self, tensor: torch.Tensor) -> Any:
        if id(tensor) not in self._made:
            shards = sharded_like(tensor, self._plain)
            made = self._plain(tensor) if shards is None else shards
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            elif tensor.requires_grad:
                made.requires_grad_()
            self._made[id(tensor)] = made
        return self._made[id(tensor)]

    def _plain(self, tensor: torch.Tensor) -> torch.Tensor:
        dtype = tensor.dtype
        if self._dtype is not None and dtype.is_floating_point:
            dtype = self._dtype
        with self._mode:
            return torch.empty_strided(
                tuple(tensor.shape), tensor.stride(), dtype=dtype, device=self._device
            )


def _tensors(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """Yield all tensors that a module and its parts have, as parameters, buffers or plain
    attributes."""
    yield from module.parameters()
    yield from module.buffers()
    for part in module.modules():
        yield from (each for each in vars(part).values() if isinstance(each, torch.Tensor))
