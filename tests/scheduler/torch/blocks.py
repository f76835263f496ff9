"""Blocks of known models, small, with the arguments of a call."""

import operator
from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor, fx, nn
from torch.nn import functional as F  # noqa: N812

Block = Callable[[], tuple[nn.Module, tuple[Tensor, ...]]]


def heads(x: Tensor, count: int) -> Tensor:
    """(batch, rows, features) as (batch, heads, rows, features of a head)."""
    return x.view(*x.shape[:2], count, -1).transpose(1, 2)


def joined(x: Tensor) -> Tensor:
    return x.transpose(1, 2).reshape(x.shape[0], x.shape[2], -1)


class Mlp(nn.Module):
    def __init__(self, width: int = 48, inner: int = 96) -> None:
        super().__init__()
        self.up, self.down = nn.Linear(width, inner), nn.Linear(inner, width)

    def forward(self, x: Tensor) -> Tensor:
        return self.down(F.gelu(self.up(x)))


class Bert(nn.Module):
    """Separate projections, and norms after the residuals."""

    def __init__(self, width: int = 48, count: int = 4) -> None:
        super().__init__()
        self.query, self.key, self.value, self.out = (nn.Linear(width, width) for _ in range(4))
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp, self.count = Mlp(width), count

    def forward(self, x: Tensor) -> Tensor:
        q, k, v = (heads(f(x), self.count) for f in (self.query, self.key, self.value))
        x = self.first(x + self.out(joined(F.scaled_dot_product_attention(q, k, v))))
        return self.second(x + self.mlp(x))


class Separate(nn.Module):
    """Queries, keys and values; some have no bias."""

    def __init__(self, width: int, biases: tuple[bool, ...]) -> None:
        super().__init__()
        self.layers = nn.ModuleList(nn.Linear(width, width, bias=bias) for bias in biases)

    def forward(self, x: Tensor) -> Tensor:
        batch, tokens, _ = x.shape
        parts = (layer(x).view(batch, tokens, 4, -1).transpose(1, 2) for layer in self.layers)
        return F.scaled_dot_product_attention(*parts).transpose(1, 2)


class Gated(nn.Module):
    """A gated layer of unequal parts: one more product reads the same rows."""

    def __init__(self, width: int, inner: int) -> None:
        super().__init__()
        self.gate = nn.Linear(width, inner, bias=False)
        self.up = nn.Linear(width, inner, bias=False)
        self.other = nn.Linear(width, 3, bias=False)

    def forward(self, x: Tensor) -> tuple[Tensor, Tensor]:
        return F.silu(self.gate(x)) * self.up(x), self.other(x)


class Gpt2(nn.Module):
    """One projection for queries, keys and values, and norms before it."""

    def __init__(self, width: int = 48, count: int = 4) -> None:
        super().__init__()
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.up, self.down, self.count = (
            nn.Linear(width, 4 * width),
            nn.Linear(4 * width, width),
            count,
        )

    def forward(self, x: Tensor) -> Tensor:
        parts = self.joint(self.first(x)).split(x.shape[-1], 2)
        q, k, v = (heads(part, self.count) for part in parts)
        x = x + self.out(joined(F.scaled_dot_product_attention(q, k, v, is_causal=True)))
        return x + self.down(F.gelu(self.up(self.second(x)), approximate="tanh"))


class Llama(nn.Module):
    """Grouped queries, rotary embeddings by tables, and a gate."""

    def __init__(self, width: int = 64, count: int = 4, kept: int = 2, inner: int = 96) -> None:
        super().__init__()
        self.count, self.kept, own = count, kept, width // count
        self.query, self.out = (nn.Linear(width, width, bias=False) for _ in range(2))
        self.key, self.value = (nn.Linear(width, kept * own, bias=False) for _ in range(2))
        self.gate, self.up = (nn.Linear(width, inner, bias=False) for _ in range(2))
        self.down = nn.Linear(inner, width, bias=False)
        self.first, self.second = (nn.Parameter(torch.rand(width)) for _ in range(2))

    def forward(self, x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
        y = self._norm(x, self.first)
        q = _turned(heads(self.query(y), self.count), cos, sin)
        k = _turned(heads(self.key(y), self.kept), cos, sin)
        v = heads(self.value(y), self.kept)
        z = F.scaled_dot_product_attention(q, self._spread(k), self._spread(v), is_causal=True)
        x = x + self.out(joined(z))
        y = self._norm(x, self.second)
        return x + self.down(F.silu(self.gate(y)) * self.up(y))

    def _spread(self, x: Tensor) -> Tensor:
        batch, kept, rows, own = x.shape
        wide = x[:, :, None].expand(batch, kept, self.count // kept, rows, own)
        return wide.reshape(batch, self.count, rows, own)

    @staticmethod
    def _norm(x: Tensor, weight: Tensor) -> Tensor:
        return x * torch.rsqrt((x * x).mean(-1, keepdim=True) + 1e-6) * weight


def _turned(x: Tensor, cos: Tensor, sin: Tensor) -> Tensor:
    first, second = x.chunk(2, -1)
    return x * cos + torch.cat((-second, first), -1) * sin


class Experts(nn.Module):
    """All experts of all rows, weighed by a softmax: no routing."""

    def __init__(self, width: int = 32, inner: int = 48, count: int = 4) -> None:
        super().__init__()
        self.router = nn.Linear(width, count)
        self.up = nn.Parameter(torch.randn(count, width, inner))
        self.down = nn.Parameter(torch.randn(count, inner, width))

    def forward(self, x: Tensor) -> Tensor:
        weights = torch.softmax(self.router(x), -1)
        each = F.silu(torch.einsum("td,edf->etf", x, self.up))
        out = torch.bmm(each, self.down)
        return (out * weights.t()[:, :, None]).sum(0)


class Vit(nn.Module):
    """One projection whose result is unbound in queries, keys and values."""

    def __init__(self, width: int = 48, count: int = 4) -> None:
        super().__init__()
        self.joint, self.out = nn.Linear(width, 3 * width), nn.Linear(width, width)
        self.first, self.second = nn.LayerNorm(width), nn.LayerNorm(width)
        self.mlp, self.count = Mlp(width), count

    def forward(self, x: Tensor) -> Tensor:
        batch, rows, _ = x.shape
        joint = self.joint(self.first(x)).reshape(batch, rows, 3, self.count, -1)
        q, k, v = joint.permute(2, 0, 3, 1, 4).unbind(0)
        x = x + self.out(joined(F.scaled_dot_product_attention(q, k, v)))
        return x + self.mlp(self.second(x))


class Bottleneck(nn.Module):
    """Three convolutions with batch norms, and a residual."""

    def __init__(self, width: int = 32, inner: int = 16) -> None:
        super().__init__()
        self.reduce = nn.Conv2d(width, inner, 1, bias=False)
        self.middle = nn.Conv2d(inner, inner, 3, padding=1, bias=False)
        self.expand = nn.Conv2d(inner, width, 1, bias=False)
        self.norms = nn.ModuleList(map(nn.BatchNorm2d, (inner, inner, width)))

    def forward(self, x: Tensor) -> Tensor:
        first, second, third = self.norms
        y = F.relu(second(self.middle(F.relu(first(self.reduce(x))))))
        return F.relu(third(self.expand(y)) + x)


class ConvNext(nn.Module):
    """A convolution of each channel alone, then an MLP over the channels."""

    def __init__(self, width: int = 24) -> None:
        super().__init__()
        self.each = nn.Conv2d(width, width, 7, padding=3, groups=width)
        self.norm, self.mlp = nn.LayerNorm(width), Mlp(width, 4 * width)
        self.scale = nn.Parameter(torch.rand(width))

    def forward(self, x: Tensor) -> Tensor:
        y = self.mlp(self.norm(self.each(x).permute(0, 2, 3, 1)))
        return x + (y * self.scale).permute(0, 3, 1, 2)


class Decoder(nn.Module):
    """A step that doubles an image, as those of autoencoders do."""

    def __init__(self) -> None:
        super().__init__()
        self.up = nn.ConvTranspose2d(8, 12, 3, stride=2, padding=1, output_padding=1)
        self.norm = nn.GroupNorm(3, 12)

    def forward(self, x: Tensor) -> Tensor:
        return nn.functional.silu(self.norm(self.up(x)))


def _of(make: Callable[[], nn.Module], *shapes: tuple[int, ...]) -> Block:
    return lambda: (make(), tuple(torch.randn(shape) for shape in shapes))


BLOCKS: dict[str, Block] = {
    "mlp": _of(Mlp, (20, 48)),
    "bert": _of(Bert, (1, 20, 48)),
    "gpt2": _of(Gpt2, (1, 20, 48)),
    "llama": _of(Llama, (1, 20, 64), (20, 16), (20, 16)),
    "moe": _of(Experts, (20, 32)),
    "vit": _of(Vit, (1, 21, 48)),
    "bottleneck": _of(Bottleneck, (1, 32, 14, 14)),
    "convnext": _of(ConvNext, (1, 24, 14, 14)),
    "decoder": _of(Decoder, (1, 8, 5, 6)),
}


class _Doubled(fx.Interpreter):
    """Runs a graph in float64, and keeps the value of every node, that of an input as it was."""

    def __init__(self, graph: fx.Graph) -> None:
        super().__init__(nn.Module(), graph=graph)
        self.values: dict[fx.Node, Any] = {}

    def run_node(self, n: fx.Node) -> Any:
        found = self.values[n] = super().run_node(n)
        if n.op == "placeholder":  # which the graph may change
            self.values[n] = found.clone()
        return found


def values_of(graph: fx.Graph) -> dict[fx.Node, Tensor]:
    """The values of all nodes for random inputs, computed by torch in float64."""
    torch.manual_seed(0)
    runner = _Doubled(graph)
    runner.run(*(_random(node.meta["val"]) for node in graph.find_nodes(op="placeholder")))
    return {
        node: value[0] if isinstance(value, tuple | list) else value
        for node, value in runner.values.items()
        if node.target is not operator.getitem or isinstance(value, Tensor)
    }


def _random(fake: Tensor) -> Tensor:
    """Positive numbers, as variances are."""
    if not fake.dtype.is_floating_point:
        return torch.randint(2, 6, tuple(fake.shape), dtype=fake.dtype)
    made = torch.empty_strided(tuple(fake.shape), fake.stride(), dtype=torch.float64)
    return made.copy_(torch.rand(tuple(fake.shape)))
