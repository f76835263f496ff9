"""Register Tilewright as a provider of vLLM's IR: norms of rows, with and without a residual.

Needs the extra ``torch`` and vLLM. vLLM calls the first provider of an operator's priority that
serves the arguments. A package makes this known by an entry point of ``vllm.general_plugins`` that
names ``register``; ``--kernel-config '{"ir_op_priority": {"rms_norm": ["tilewright"]}}'`` asks for
it. A graph of dynamic sizes keeps vLLM's own operators, for kernels are of fixed sizes.
"""

from functools import lru_cache

import torch
from torch import Tensor

from tilewright import workload
from tilewright.scheduler.torch.operator import key_of

NORM = "y[r, c] = x[r, c] * rsqrt(mean[c](x[r, c] * x[r, c]) + {eps}) * weight[c]"
ADDED = """
s[r, c] = x[r, c] + residual[r, c]
y[r, c] = s[r, c] * rsqrt(mean[c](s[r, c] * s[r, c]) + {eps}) * weight[c]
-> y, s
"""


@lru_cache
def key(text: str, x: tuple[int, int], eps: float, dtype: torch.dtype) -> str:
    """Return the key of a program for rows of a size."""
    sizes = {"r": x[0], "c": x[1], "dtype": str(dtype).removeprefix("torch.")}
    return key_of(workload(text.format(eps=eps), **sizes))


def serves(
    x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> bool:
    """Tell whether there is a kernel: for one dtype, whole rows, and sizes that are known."""
    known = all(type(extent) is int and extent for extent in x.shape)
    return known and variance_size is None and weight is not None and weight.dtype == x.dtype


def rms_norm(
    x: Tensor, weight: Tensor | None, epsilon: float, variance_size: int | None = None
) -> Tensor:
    """Normalise the last dimension."""
    rows = x.reshape(-1, x.shape[-1])
    made = torch.ops.tilewright.run.of2(rows, weight, key(NORM, rows.shape, epsilon, x.dtype))
    return made.view(x.shape)


def serves_added(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> bool:
    """Tell whether there is a kernel that adds a residual first."""
    return serves(x, weight, epsilon, variance_size) and x_residual.dtype == x.dtype


def fused_add_rms_norm(
    x: Tensor,
    x_residual: Tensor,
    weight: Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> tuple[Tensor, Tensor]:
    """Add the residual, and normalise the sum; return both."""
    rows, others = (each.reshape(-1, x.shape[-1]) for each in (x, x_residual))
    made = torch.ops.tilewright.run_several(
        [rows, others, weight], key(ADDED, rows.shape, epsilon, x.dtype)
    )
    return made[0].view(x.shape), made[1].view(x.shape)


def register() -> None:
    """Make the implementations known to vLLM."""
    from vllm import ir

    provider = "tilewright"
    ir.ops.rms_norm.register_impl(provider, supports_args=serves)(rms_norm)
    added = ir.ops.fused_add_rms_norm.register_impl(provider, supports_args=serves_added)
    added(fused_add_rms_norm)
