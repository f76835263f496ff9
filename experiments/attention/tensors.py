"""Tensors of a case, and its output in float64."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping

import torch

from experiments.attention.cases import SOFTCAP, WINDOW, AttentionCase

Tensors = Mapping[str, torch.Tensor]


def drawn(case: AttentionCase, spread: float = 1.0) -> dict[str, torch.Tensor]:
    """Normal inputs by name, queries with the standard deviation ``spread``; pages in any order.
    Scales of float8 lie about one."""
    torch.manual_seed(0)
    if case.is_float8:
        return _in_float8(case, spread)
    kind, shapes = getattr(torch, case.dtype), dict(case.shapes)
    table = shapes.pop("t", None)
    found = {name: torch.randn(s, device="cuda", dtype=kind) for name, s in shapes.items()}
    found["q"] *= spread
    if table is not None:
        pages = torch.randperm(math.prod(table), device="cuda", dtype=torch.int32)
        found = {"t": pages.view(table), **found}
    return found


def _in_float8(case: AttentionCase, spread: float) -> dict[str, torch.Tensor]:
    kind, found = getattr(torch, case.dtype), {}
    for name, shape in case.shapes.items():
        drawn = torch.randn(shape, device="cuda") * (spread if name == "q" else 1.0)
        is_scale = name.endswith("s")
        found[name] = (drawn * 0.1).exp() if is_scale else drawn.to(kind)
    return found


def exact(case: AttentionCase, tensors: Tensors) -> torch.Tensor:
    """Return the output in float64, a head at a time and so many rows that they fit."""
    q, (k, v) = _scaled(tensors, "q").flatten(0, 1), _cache(case, tensors)
    group, step = case.heads // case.kv_heads, 4096
    found = torch.empty(q.shape, dtype=torch.float64, device="cuda")
    key = torch.arange(case.length, device="cuda")
    for h in range(q.shape[0]):
        keys, values = k[h // group].double(), v[h // group].double()
        for i in range(0, case.queries, step):
            rows = q[h, i : i + step].double()
            own = case.length - case.queries + i + torch.arange(len(rows), device="cuda")
            distance = key[None, :] - own[:, None]
            score = rows @ keys.T / math.sqrt(case.depth)
            if case.has("softcap"):
                score = SOFTCAP * torch.tanh(score / SOFTCAP)
            if case.has("alibi"):
                score += tensors["slope"][h % case.heads].double() * distance
            if case.has("causal"):
                score.masked_fill_(distance > 0, -math.inf)
            if case.has("window"):
                score.masked_fill_(distance <= -WINDOW, -math.inf)
            found[h, i : i + step] = score.softmax(-1) @ values
    return found.view(tensors["q"].shape)


def _cache(case: AttentionCase, tensors: Tensors) -> Iterator[torch.Tensor]:
    """Keys and values of each head, from pages if they are there."""
    for name in "kv":
        found = _scaled(tensors, name)
        if case.has("pages"):
            found = found[tensors["t"].long()].flatten(1, 2).transpose(1, 2)
        yield found.flatten(0, 1)


def _scaled(tensors: Tensors, name: str) -> torch.Tensor:
    """Return an operand times the scale of each head, if it has one."""
    scale = tensors.get(f"{name}s")
    return tensors[name] if scale is None else tensors[name].float() * scale[:, None, None]
