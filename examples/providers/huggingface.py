"""Layers for Hugging Face's ``kernels``: norms and gates that Tilewright's kernels compute.

Needs the extra ``torch`` and ``pip install kernels``. ``kernelize`` replaces the ``forward`` of
each layer whose name a mapping has. A mapping usually names repositories of the hub; ``MAPPING``
names classes of this file. Kernels come from the database, and what nobody measured is predicted.
"""

from dataclasses import dataclass
from functools import lru_cache

import torch
from torch import nn

from tilewright import workload
from tilewright.scheduler.torch.operator import key_of

run = torch.ops.tilewright.run


made_key = lru_cache(lambda text, **sizes: key_of(workload(text, **sizes)))


@torch.compiler.assume_constant_result
def key(text: str, rows: str, columns: int, dtype: torch.dtype, **more: float) -> str:
    """Return the key of an operator of rows: what a compiled graph holds of it."""
    name = str(dtype).removeprefix("torch.")
    return made_key(text, r=rows, c=columns, dtype=name, **more)


class RMSNorm(nn.Module):
    """The ``forward`` of ``LlamaRMSNorm``, whose members it reads."""

    can_torch_compile = True
    has_backward = True

    def forward(self, hidden_states: torch.Tensor) -> torch.Tensor:
        """Normalise the last dimension."""
        x = hidden_states.flatten(0, -2)
        rows = f"{x.shape[0]}"  # as a text, for a compiled graph is of one size
        made = key("rmsnorm", rows, x.shape[1], x.dtype, eps=self.variance_epsilon)
        return run.of2(x, self.weight, made).view(hidden_states.shape)


class SiluAndMul(nn.Module):
    """The ``forward`` of a gate, ``silu(x[..., :d]) * x[..., d:]``."""

    can_torch_compile = True
    has_backward = True

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        """Gate the second half of the last dimension by the first."""
        both = x.flatten(0, -2)
        rows, d = f"{both.shape[0]}", both.shape[1] // 2
        made = key(f"y[r, c] = silu(x[r, c]) * x[r, c + {d}]", rows, d, x.dtype)
        return run.of1(both, made).view(*x.shape[:-1], d)


@dataclass(frozen=True)
class Layer:
    """A class of this file in the place of a repository."""

    layer: type[nn.Module]

    def load(self) -> type[nn.Module]:
        """Return the class whose ``forward`` is taken."""
        return self.layer


MAPPING = {
    "RMSNorm": {"cpu": Layer(RMSNorm), "cuda": Layer(RMSNorm)},
    "SiluAndMul": {"cpu": Layer(SiluAndMul), "cuda": Layer(SiluAndMul)},
}
