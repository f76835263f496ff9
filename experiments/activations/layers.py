"""A layer of BERT-Large and a block of a Llama, as their models compute them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


class Bert(nn.Module):
    """A layer of BERT without dropout: attention and two layers, each with a norm behind it."""

    def __init__(self, width: int, heads: int, inner: int) -> None:
        super().__init__()
        self.heads = heads
        self.query, self.key = nn.Linear(width, width), nn.Linear(width, width)
        self.value, self.joined = nn.Linear(width, width), nn.Linear(width, width)
        self.between, self.last = nn.LayerNorm(width), nn.LayerNorm(width)
        self.wide, self.narrow = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's result for ``x``, (texts, length, width)."""
        q, k, v = (_by_head(layer(x), self.heads) for layer in (self.query, self.key, self.value))
        y = functional.scaled_dot_product_attention(q, k, v)
        x = self.between(x + self.joined(y.transpose(1, 2).reshape(x.shape)))
        return self.last(x + self.narrow(functional.gelu(self.wide(x))))


class Llama(nn.Module):
    """A block of a Llama: grouped heads with rotary places, and a gated pair of layers."""

    def __init__(self, width: int, heads: int, groups: int, inner: int, length: int) -> None:
        super().__init__()
        self.heads, self.groups, size = heads, groups, width // heads
        self.query, self.joined = _plain(width, width), _plain(width, width)
        self.key, self.value = _plain(width, groups * size), _plain(width, groups * size)
        self.before, self.between = nn.RMSNorm(width, 1e-5), nn.RMSNorm(width, 1e-5)
        self.gate, self.up, self.down = (
            _plain(width, inner),
            _plain(width, inner),
            _plain(inner, width),
        )
        speeds = 500_000.0 ** (-torch.arange(0, size, 2) / size)
        angles = torch.outer(torch.arange(length), speeds).repeat(1, 2)
        self.register_buffer("cosines", angles.cos())
        self.register_buffer("sines", angles.sin())

    def forward(self, x: Tensor) -> Tensor:
        """Return the block's result for ``x``, (texts, length, width)."""
        found = self.before(x)
        q = self._turned(_by_head(self.query(found), self.heads))
        k = self._turned(_by_head(self.key(found), self.groups))
        v = _by_head(self.value(found), self.groups)
        k, v = (each.repeat_interleave(self.heads // self.groups, 1) for each in (k, v))
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(y.transpose(1, 2).reshape(x.shape))
        found = self.between(x)
        return x + self.down(functional.silu(self.gate(found)) * self.up(found))

    def _turned(self, x: Tensor) -> Tensor:
        """Return heads with rotary places."""
        low, high = x.chunk(2, -1)
        return x * self.cosines + torch.cat((-high, low), -1) * self.sines


def _plain(inputs: int, outputs: int) -> nn.Linear:
    return nn.Linear(inputs, outputs, bias=False)


def _by_head(x: Tensor, heads: int) -> Tensor:
    texts, length, _ = x.shape
    return x.view(texts, length, heads, -1).transpose(1, 2)


@dataclass(frozen=True)
class Case:
    """A layer, and the ``width`` of what it reads: one text of ``length`` words."""

    make: Callable[[], nn.Module]
    width: int
    length: int

    def made(self) -> tuple[nn.Module, Tensor]:
        """Return the layer and an input, the same ones in each process."""
        torch.manual_seed(0)
        return self.make(), torch.randn(1, self.length, self.width, requires_grad=True)


CASES = {
    "BERT-Large": Case(lambda: Bert(1024, 16, 4096), 1024, 256),
    "Llama 3.2 1B": Case(lambda: Llama(2048, 32, 8, 8192, 128), 2048, 128),
}
SMALL = {
    "BERT-Large": Case(lambda: Bert(64, 4, 256), 64, 32),
    "Llama 3.2 1B": Case(lambda: Llama(64, 4, 2, 256, 16), 64, 16),
}
