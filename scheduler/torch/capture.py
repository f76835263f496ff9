"""The graphs of a module as the pass of the backend sees them, without memory for its weights.

Inductor compiles the module up to its custom pass, which keeps the graph and stops. Weights and
inputs become fake tensors first, so models on ``meta`` are welcome, and no kernel runs.
"""

from __future__ import annotations

import copy
import logging
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import torch
from torch import fx
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.utils import _pytree as pytree

from tilewright.scheduler.torch.blame import failed
from tilewright.spaces.target import Target

CAPTURES = 1 << 10
"""Graphs of one function that Dynamo may make, before it gives up."""


class _Kept(Exception):  # noqa: N818  # no fault: it ends a compilation
    """The graph is kept; the compilation need not go on."""


def captured(
    module: torch.nn.Module,
    args: Sequence[Any],
    target: Target,
    kwargs: Mapping[str, Any] | None = None,
    dtype: torch.dtype | None = None,
) -> list[fx.Graph]:
    """The graphs of a call of ``module``, for inference on a device like that of ``target``. All
    tensors of floating point are taken for ``dtype``, if one is given.

    Raises :class:`InputError` for a module that cannot be captured, with the line of its code.
    """
    from torch._dynamo import config as dynamo_config

    graphs: list[fx.Graph] = []
    mode = FakeTensorMode(allow_non_fake_inputs=True)
    fakes = _Fakes(mode, _device(target), dtype)
    model = fakes.module(module)
    given, named = fakes.tree(tuple(args)), fakes.tree(dict(kwargs or {}))
    settings = {
        "automatic_dynamic_shapes": False,
        "recompile_limit": CAPTURES,
        "accumulated_recompile_limit": CAPTURES,
    }
    known = {name: value for name, value in settings.items() if hasattr(dynamo_config, name)}
    compiled = torch.compile(model, backend=_Backend(graphs), dynamic=False)
    try:
        with _silence(), dynamo_config.patch(**known), mode, torch.no_grad():
            compiled(*given, **named)
    except Exception as error:  # anything that the user's code, or a graph break, may raise
        raise failed(error) from error
    return graphs


def _device(target: Target) -> str:
    """The kind of device of the fake tensors. Without a GPU, torch has fake ones of CPUs alone:
    kernels for GPUs compute the same."""
    found = getattr(torch, target.kind, None)
    return target.kind if found is not None and found.is_available() else "cpu"


@contextmanager
def _silence() -> Iterator[None]:
    """Keep torch from logging what is raised, or what the user has asked for."""
    before = logging.root.manager.disable
    logging.disable(logging.CRITICAL)
    try:
        yield
    finally:
        logging.disable(before)


class _Backend:
    """A backend for ``torch.compile`` that keeps graphs, and runs what it was given as it is."""

    def __init__(self, graphs: list[fx.Graph]) -> None:
        self._graphs = graphs

    def __call__(self, module: fx.GraphModule, inputs: Sequence[Any]) -> Any:
        from torch._inductor.compile_fx import compile_fx

        before = len(self._graphs)
        patches = {"post_grad_custom_pre_pass": self._keep, "fx_graph_cache": False}
        patches |= {"compile_threads": 1}  # no processes that would compile what is not compiled
        try:
            compile_fx(module, list(inputs), config_patches=patches)
        except Exception:
            if len(self._graphs) == before:
                raise
        return module.forward

    def _keep(self, graph: fx.Graph) -> None:
        self._graphs.append(graph)
        raise _Kept


class _Fakes:
    """Fake tensors in place of real ones, each made once, on one device, and all of
    floating point in one dtype, if it is given."""

    def __init__(self, mode: FakeTensorMode, device: str, dtype: torch.dtype | None) -> None:
        self._mode, self._device, self._dtype = mode, device, dtype
        self._made: dict[int, Any] = {}

    def module(self, module: torch.nn.Module) -> torch.nn.Module:
        """A copy of a module whose tensors are fake."""
        memo = {id(tensor): self._fake(tensor) for tensor in _tensors(module)}
        return copy.deepcopy(module, memo)

    def tree(self, given: Any) -> Any:
        """The same structure with fake tensors."""
        return pytree.tree_map_only(torch.Tensor, self._fake, given)

    def _fake(self, tensor: torch.Tensor) -> Any:
        if id(tensor) not in self._made:
            dtype = tensor.dtype
            if self._dtype is not None and dtype.is_floating_point:
                dtype = self._dtype
            with self._mode:
                made: torch.Tensor = torch.empty_strided(
                    tuple(tensor.shape), tensor.stride(), dtype=dtype, device=self._device
                )
            if isinstance(tensor, torch.nn.Parameter):
                made = torch.nn.Parameter(made, requires_grad=tensor.requires_grad)
            self._made[id(tensor)] = made
        return self._made[id(tensor)]


def _tensors(module: torch.nn.Module) -> Iterator[torch.Tensor]:
    """All tensors that a module and its parts have, as parameters, buffers or plain attributes."""
    yield from module.parameters()
    yield from module.buffers()
    for part in module.modules():
        yield from (each for each in vars(part).values() if isinstance(each, torch.Tensor))
