"""Blocks of models and whole models with random weights, and their inputs."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeAlias

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn

from experiments.model_suites.images import inception, mixed_35, resnet

Shapes: TypeAlias = tuple[tuple[int, ...], ...]


def _heads(x: torch.Tensor, heads: int) -> torch.Tensor:
    batch, rows, width = x.shape
    return x.view(batch, rows, heads, width // heads).transpose(1, 2)


def _together(x: torch.Tensor) -> torch.Tensor:
    batch, heads, rows, width = x.shape
    return x.transpose(1, 2).reshape(batch, rows, heads * width)


class Bert(nn.Module):
    """A layer of BERT-base: norms follow residuals."""

    def __init__(self, width: int = 768, heads: int = 12) -> None:
        super().__init__()
        self.q, self.k, self.v, self.out = (nn.Linear(width, width) for _ in range(4))
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second, self.heads = nn.LayerNorm(width), nn.LayerNorm(width), heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        q, k, v = (_heads(part(x), self.heads) for part in (self.q, self.k, self.v))
        x = self.first(x + self.out(_together(F.scaled_dot_product_attention(q, k, v))))
        return self.second(x + self.down(F.gelu(self.up(x))))


class Gpt2(nn.Module):
    """A block of GPT-2: one product for queries, keys and values, a causal mask."""

    def __init__(self, width: int = 768, heads: int = 12, causal: bool = True) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.up, self.down = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.heads, self.causal = heads, causal

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        parts = self.qkv(self.first(x)).chunk(3, 2)
        q, k, v = (_heads(part, self.heads) for part in parts)
        y = F.scaled_dot_product_attention(q, k, v, is_causal=self.causal)
        x = x + self.out(_together(y))
        approximate = "tanh" if self.causal else "none"
        return x + self.down(F.gelu(self.up(self.second(x)), approximate=approximate))


class Llama(nn.Module):
    """A block like Llama's: rotated heads that share keys and values, a gated product."""

    def __init__(self, width: int = 1024, heads: int = 16, shared: int = 4, hidden: int = 2816):
        super().__init__()
        self.heads, self.shared, each = heads, shared, width // heads
        self.q, self.out = nn.Linear(width, width, False), nn.Linear(width, width, False)
        self.k, self.v = (nn.Linear(width, shared * each, False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, hidden, False) for _ in range(2))
        self.down = nn.Linear(hidden, width, False)
        self.first, self.second = (nn.Parameter(torch.ones(width)) for _ in range(2))

    def norm(self, x: torch.Tensor, weight: torch.Tensor) -> torch.Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight

    def forward(self, x: torch.Tensor, cos: torch.Tensor, sin: torch.Tensor) -> torch.Tensor:
        def rotated(t: torch.Tensor) -> torch.Tensor:
            one, other = t.chunk(2, -1)
            return t * cos + torch.cat((-other, one), -1) * sin

        y = self.norm(x, self.first)
        q = rotated(_heads(self.q(y), self.heads))
        k, v = rotated(_heads(self.k(y), self.shared)), _heads(self.v(y), self.shared)
        k, v = (t.repeat_interleave(self.heads // self.shared, 1) for t in (k, v))
        x = x + self.out(_together(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        y = self.norm(x, self.second)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))


class Bottleneck(nn.Module):
    """A bottleneck of ResNet-50."""

    def __init__(self, channels: int = 256, width: int = 64) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(channels, width, 1, bias=False)
        self.middle = nn.Conv2d(width, width, 3, padding=1, bias=False)
        self.expand = nn.Conv2d(width, channels, 1, bias=False)
        self.norms = nn.ModuleList(nn.BatchNorm2d(size) for size in (width, width, channels))

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        y = F.relu(self.norms[0](self.reduce(x)))
        y = F.relu(self.norms[1](self.middle(y)))
        return F.relu(self.norms[2](self.expand(y)) + x)


class Whole(nn.Module):
    """A model of transformers from its first layer to its last, with random weights: it takes the
    embeddings of tokens."""

    def __init__(self, kind: str) -> None:
        super().__init__()
        import transformers

        make, configuration = getattr(transformers, kind), getattr(transformers, kind).config_class
        self.model = make(configuration())

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        found: torch.Tensor = self.model(inputs_embeds=x, use_cache=False)[0]
        return found


def _llama8b() -> Llama:
    return Llama(4096, 32, 8, 14336)


def _sequence(rows: int) -> Shapes:
    """Return the shape of a sequence of BERT-base's, GPT-2's and ViT-B's width."""
    return ((1, rows, 768),)


def _rotated(rows: int, width: int, each: int) -> Shapes:
    """Return the shapes of a sequence, and of cosines and sines for heads of ``each`` columns."""
    return (1, rows, width), (rows, each), (rows, each)


BLOCKS: dict[str, tuple[Callable[[], nn.Module], Shapes]] = {
    "bert-128": (Bert, _sequence(128)),
    "bert-base-128": (lambda: Whole("BertModel"), _sequence(128)),
    "gpt2-128": (Gpt2, _sequence(128)),
    "gpt2-16": (Gpt2, _sequence(16)),
    "gpt2-1": (Gpt2, _sequence(1)),
    "gpt2-whole-128": (lambda: Whole("GPT2LMHeadModel"), _sequence(128)),
    "llama-128": (Llama, _rotated(128, 1024, 64)),
    "llama-8b-16": (_llama8b, _rotated(16, 4096, 128)),
    "llama-8b-2048": (_llama8b, _rotated(2048, 4096, 128)),
    "vit-197": (lambda: Gpt2(causal=False), _sequence(197)),
    "resnet-56": (Bottleneck, ((1, 256, 56, 56),)),
    "resnet-50-8": (resnet, ((8, 3, 224, 224),)),
    "inception-35": (lambda: mixed_35(192, 32), ((1, 192, 35, 35),)),
    "inception": (inception, ((1, 3, 299, 299),)),
}
"""The block or whole model of a name, and the shapes of its inputs."""


def make(name: str, device: str = "cpu") -> tuple[nn.Module, tuple[Any, ...]]:
    """Return the block of a name for inference, and its inputs; the same each time. They are
    float32 on a CPU, bfloat16 on a GPU."""
    torch.manual_seed(0)
    block, shapes = BLOCKS[name]
    module = block().eval()
    kind = torch.bfloat16 if device == "cuda" else torch.float32
    inputs = tuple(torch.randn(shape).to(device, kind) for shape in shapes)
    return module.to(device, kind), inputs
