"""Gradients of kernels: by kernels of their own where these were measured and are faster
(:mod:`.backward`), and else by torch's own operators, which compute the workload once more.
Compiled models need none of this, for their backward graphs have regions of their own.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

from tilewright.scheduler.torch.kernels.functions import workload_for
from tilewright.scheduler.torch.operator.backward import backwards
from tilewright.scheduler.torch.operator.evaluation import evaluated

_torch: Any = torch  # some of its functions have no types


class Differentiable(_torch.autograd.Function):  # type: ignore[misc]
    """A call of an operator, whose operands are plain or a list, that autograd knows of."""

    @staticmethod
    def forward(ctx: Any, run: Any, is_plain: bool, key: str, *operands: Tensor) -> Any:
        """Call the operator as if nothing recorded gradients."""
        ctx.key = key
        with _torch._C._AutoDispatchBelowAutograd():
            made = run(*operands, key) if is_plain else run(list(operands), key)
        several = made if isinstance(made, list) else [made]
        ctx.own = backwards.find(key, operands, ctx.needs_input_grad[3:])
        ctx.count = len(operands)
        ctx.save_for_backward(*operands, *(several if ctx.own and ctx.own.saved else ()))
        ctx.mark_non_differentiable(*(each for each in several if not each.is_floating_point()))
        return tuple(made) if isinstance(made, list) else made

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor | None) -> tuple[Any, ...]:
        """Return the gradients by a kernel of their own, or by torch's operators."""
        operands, outputs = ctx.saved_tensors[: ctx.count], ctx.saved_tensors[ctx.count :]
        wanted = ctx.needs_input_grad[3:]

        def by_torch() -> list[Tensor | None]:
            return _by_torch(ctx.key, operands, wanted, gradients)

        own, given = ctx.own, [each for each in gradients if each is not None]
        if own is None or torch.is_grad_enabled() or len(given) < len(gradients):
            made = by_torch()
        else:
            made = own.chosen(lambda: own.gradients(operands, outputs, given), by_torch)
        found = iter(made)
        return (None, None, None, *(next(found) if is_wanted else None for is_wanted in wanted))


def _by_torch(
    key: str, operands: Sequence[Tensor], wanted: Sequence[bool], gradients: Sequence[Tensor | None]
) -> list[Tensor | None]:
    """Return the gradients of what torch's operators compute of the operands."""
    with torch.enable_grad():
        given = [each.view_as(each) for each in operands]
        outputs = evaluated(workload_for(key, given).written, given)
    pairs = [
        (output, gradient)
        for output, gradient in zip(outputs, gradients, strict=True)
        if gradient is not None and output.requires_grad
    ]
    return list(
        torch.autograd.grad(
            [output for output, _ in pairs],
            [each for each, is_wanted in zip(given, wanted, strict=True) if is_wanted],
            [gradient for _, gradient in pairs],
            create_graph=torch.is_grad_enabled(),
            allow_unused=True,
        )
    )
