"""Count the bytes that autograd keeps from a forward pass to the backward one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, nn
from torch.autograd.graph import saved_tensors_hooks


def kept_bytes(run: Callable[..., Tensor], *inputs: Tensor, model: nn.Module) -> int:
    """Return the bytes of all storages that a call of ``run`` saves, each once, but for those of
    the ``model``'s parameters."""
    own = {parameter.untyped_storage().data_ptr() for parameter in model.parameters()}
    found: dict[int, Any] = {}  # which also keeps the storages, so that no two have one address

    def note(tensor: Tensor) -> Tensor:
        storage = tensor.untyped_storage()
        if storage.data_ptr() not in own:
            found[storage.data_ptr()] = storage
        return tensor

    with saved_tensors_hooks(note, lambda tensor: tensor):
        result = run(*inputs)
    count = sum(storage.nbytes() for storage in found.values())
    del result
    return count


def both_passes(run: Callable[..., Tensor], *inputs: Tensor) -> Callable[[], None]:
    """Return a call of the forward and the backward pass, whose gradients are dropped."""
    factor = torch.ones_like(run(*inputs))
    wanted = [each for each in inputs if each.requires_grad]

    def call() -> None:
        run(*inputs).backward(factor)
        for each in wanted:
            each.grad = None

    return call
