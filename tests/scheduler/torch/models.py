"""Small blocks of models, in float32."""

from __future__ import annotations

import torch
import torch.nn.functional as F  # noqa: N812
from torch import nn


class Mlp(nn.Module):
    """A norm of a residual and two layers."""

    def __init__(self, width: int = 32, hidden: int = 48) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(width, hidden), nn.Linear(hidden, width)
        self.norm = nn.LayerNorm(width)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.second(F.gelu(self.first(x))))


class Attention(nn.Module):
    """Causal attention whose queries and keys are rotated, which permutes and concatenates."""

    def __init__(self, width: int = 32, heads: int = 2) -> None:
        super().__init__()
        self.qkv, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.heads = heads

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        batch, rows, width = x.shape
        angle = torch.arange(rows, dtype=x.dtype)[:, None] / (1 + torch.arange(8, dtype=x.dtype))

        def rotated(t: torch.Tensor) -> torch.Tensor:
            one, other = t.chunk(2, -1)
            cos, sin = angle.cos(), angle.sin()
            return torch.cat((one * cos - other * sin, one * sin + other * cos), -1)

        parts = self.qkv(x).split(width, 2)
        q, k, v = (t.view(batch, rows, self.heads, -1).transpose(1, 2) for t in parts)
        y = F.scaled_dot_product_attention(rotated(q), rotated(k), v, is_causal=True)
        return x + self.out(y.transpose(1, 2).reshape(batch, rows, width))


class Convolutions(nn.Module):
    """Two convolutions with norms, as in a residual network."""

    def __init__(self, channels: int = 8) -> None:
        super().__init__()
        self.first = nn.Conv2d(channels, channels, 3, padding=1, bias=False)
        self.second = nn.Conv2d(channels, channels, 1)
        self.norm = nn.BatchNorm2d(channels)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return F.relu(self.second(F.relu(self.norm(self.first(x)))) + x)
