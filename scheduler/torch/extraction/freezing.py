"""Graphs whose weights are constants, as the backend sees them under Inductor's ``freezing``.

Constants of captured graphs have no values. Products of one left factor are computed in two ways,
apart and joined, of which the backend takes the faster one.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import fx
from torch._inductor import config as inductor_config

from tilewright.scheduler.torch.backend.libraries import read_plain
from tilewright.scheduler.torch.backend.replacing import copied
from tilewright.scheduler.torch.regions.joining import join, products_of_one_factor


def _like(weight: torch.Tensor, *about: Any) -> torch.Tensor:
    """Return a tensor without values in the place of a packed weight."""
    return weight.new_empty(weight.shape)


def _like_transposed(weight: torch.Tensor, *about: Any) -> torch.Tensor:
    """Return the same for a transposed convolution, whose packed weight has the outputs of all
    groups first."""
    (inputs, outputs, *taps), groups = weight.shape, about[4]
    return weight.new_empty(outputs * groups, inputs // groups, *taps)


PACKING = {
    "mkl::_mkl_reorder_linear_weight": _like,
    "mkldnn::_reorder_linear_weight": _like,
    "mkldnn::_reorder_convolution_weight": _like,
    "mkldnn::_reorder_convolution_transpose_weight": _like_transposed,
}
"""Torch's operators that pack weights for its libraries of CPUs, with what they do without
values."""


@contextmanager
def constant_weights() -> Iterator[None]:
    """Let Inductor take weights for constants, which may have no values."""
    with ExitStack() as stack:
        stack.enter_context(inductor_config.patch(freezing=True))
        for operator, like in PACKING.items():
            if _lacks_meta(operator):
                space, name = operator.split("::")
                library = stack.enter_context(torch.library._scoped_library(space, "IMPL"))
                library.impl(name, like, "Meta")
        yield


def ways_of(module: fx.GraphModule) -> list[fx.GraphModule]:
    """Return a frozen graph in the ways of computing it that compete in the backend: as it is, and
    with products of one left factor joined, if there are any."""
    read_plain(module)
    made = copied(module)
    groups = products_of_one_factor(made.graph)
    for products in groups:
        join(made.graph, products)
    return [module, made] if groups else [module]


def _lacks_meta(operator: str) -> bool:
    """Tell whether torch has an operator, but not for tensors without values."""
    known = torch._C._dispatch_has_kernel_for_dispatch_key
    try:
        return not known(operator, "Meta")
    except RuntimeError:  # this torch is built without it
        return False
