"""The plain text of attention in torch, as nobody fuses it, for ``torch.compile``."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import torch

from experiments.attention.cases import SOFTCAP, WINDOW, AttentionCase


def plain_text(case: AttentionCase) -> Callable[..., torch.Tensor]:
    """Return a function of the tensors of a case by name; queries that share keys are not
    copied."""
    group, past = case.heads // case.kv_heads, case.length - case.queries

    def attention(q: Any, k: Any, v: Any, slope: Any = None) -> torch.Tensor:
        rows = q.unflatten(1, (case.kv_heads, group))
        score = torch.einsum("bkgid,bkjd->bkgij", rows, k).float() / math.sqrt(case.depth)
        if case.has("softcap"):
            score = SOFTCAP * torch.tanh(score / SOFTCAP)
        own = past + torch.arange(case.queries, device=q.device)[:, None]
        distance = torch.arange(case.length, device=q.device)[None, :] - own
        if slope is not None:
            score = score + slope.view(case.kv_heads, group, 1, 1) * distance
        if case.has("causal"):
            score = score.masked_fill(distance > 0, -math.inf)
        if case.has("window"):
            score = score.masked_fill(distance <= -WINDOW, -math.inf)
        weights = torch.softmax(score, -1).to(v.dtype)
        return torch.einsum("bkgij,bkje->bkgie", weights, v).flatten(1, 2)

    return attention
