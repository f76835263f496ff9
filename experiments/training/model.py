"""A small language model, and its training on texts that are made by a rule."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor, nn
from torch.nn import functional


@dataclass(frozen=True)
class Sizes:
    """The sizes of a model, and the texts of a step."""

    words: int = 64
    width: int = 64
    heads: int = 4
    layers: int = 2
    length: int = 32
    texts: int = 8


class Layer(nn.Module):
    """A layer of a transformer, its norms in front."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        width = sizes.width
        self.heads = sizes.heads
        self.before, self.between = nn.LayerNorm(width), nn.LayerNorm(width)
        self.whole, self.joined = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.wide, self.narrow = nn.Linear(width, 4 * width), nn.Linear(4 * width, width)

    def forward(self, x: Tensor) -> Tensor:
        """Return the layer's result for ``x``, (texts, length, width)."""
        texts, length, width = x.shape
        parts = self.whole(self.before(x)).view(texts, length, 3, self.heads, -1)
        q, k, v = parts.permute(2, 0, 3, 1, 4).unbind(0)
        y = functional.scaled_dot_product_attention(q, k, v, is_causal=True)
        x = x + self.joined(y.transpose(1, 2).reshape(texts, length, width))
        return x + self.narrow(functional.gelu(self.wide(self.between(x))))


class Model(nn.Module):
    """A language model that returns the mean loss of a text's next words."""

    def __init__(self, sizes: Sizes) -> None:
        super().__init__()
        self.words = nn.Embedding(sizes.words, sizes.width)
        self.places = nn.Parameter(torch.zeros(sizes.length, sizes.width))
        self.layers = nn.Sequential(*(Layer(sizes) for _ in range(sizes.layers)))
        self.last = nn.LayerNorm(sizes.width)
        self.head = nn.Linear(sizes.width, sizes.words)

    def forward(self, text: Tensor) -> Tensor:
        """Return the loss of ``text``, (texts, length + 1) whole numbers."""
        x = self.words(text[:, :-1]) + self.places
        found = self.head(self.last(self.layers(x)))
        return functional.cross_entropy(found.flatten(0, 1), text[:, 1:].flatten())


def texts(sizes: Sizes, seed: int, step: int) -> Tensor:
    """Draw texts of which each word follows from the one before, but for one in eight."""
    generator = torch.Generator().manual_seed(1000 * seed + step)
    shape = (sizes.texts, sizes.length + 1)
    drawn = torch.randint(sizes.words, shape, generator=generator)
    free = torch.rand(shape, generator=generator) < 1 / 8
    for place in range(1, shape[1]):
        follows = (3 * drawn[:, place - 1] + 1) % sizes.words
        drawn[:, place] = torch.where(free[:, place], drawn[:, place], follows)
    return drawn


def losses(
    model: Model, run: Callable[[Tensor], Tensor], sizes: Sizes, seed: int, steps: int
) -> list[float]:
    """Train a model from the start by AdamW, called as ``run``, and return the loss of each
    step."""
    torch.manual_seed(seed)
    model.load_state_dict(Model(sizes).state_dict())
    optimizer = torch.optim.AdamW(model.parameters(), 3e-3)
    found = []
    for step in range(steps):
        optimizer.zero_grad()
        loss = run(texts(sizes, seed, step))
        loss.backward()
        optimizer.step()
        found.append(loss.item())
    return found
