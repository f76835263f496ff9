"""Attention by torch: by its libraries, and compiled."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import torch
from torch.nn.attention import SDPBackend, sdpa_kernel
from torch.nn.functional import scaled_dot_product_attention

from experiments.attention.cases import SOFTCAP, WINDOW, AttentionCase
from experiments.attention.tensors import Tensors
from experiments.rivals import usable

BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}


def rivals(
    case: AttentionCase, tensors: Tensors, compiled: bool
) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """Calls by name, and why others are not among them. None of torch's reads keys by a table
    or multiplies float8."""
    makers: dict[str, Callable[[], Callable[[], Any]]] = {}
    if case.has("pages") or case.is_float8:
        return {}, {}
    if not any(map(case.has, ("alibi", "softcap", "window"))):
        makers = {name: partial(_library, case, tensors, which) for name, which in BACKENDS.items()}
    if compiled:
        makers["flex"] = partial(flex, case, tensors)
    return usable(makers)


def _library(case: AttentionCase, tensors: Tensors, which: SDPBackend) -> Callable[[], Any]:
    q, k, v = (tensors[name] for name in "qkv")
    grouped = case.heads != case.kv_heads

    def call() -> Any:
        with sdpa_kernel(which):
            return scaled_dot_product_attention(
                q, k, v, is_causal=case.has("causal"), enable_gqa=grouped
            )

    return call


def flex(case: AttentionCase, tensors: Tensors) -> Callable[[], Any]:
    """Compiled FlexAttention, with the form as its functions."""
    from torch.nn.attention.flex_attention import create_block_mask, flex_attention

    past = case.length - case.queries
    slope = tensors.get("slope")

    def seen(b: Any, h: Any, q: Any, k: Any) -> Any:
        found = q + past >= k
        return found & (q + past - k < WINDOW) if case.has("window") else found

    def changed(score: Any, b: Any, h: Any, q: Any, k: Any) -> Any:
        if case.has("softcap"):
            score = SOFTCAP * torch.tanh(score / SOFTCAP)
        return score + slope[h] * (k - q - past) if slope is not None else score

    has_change = case.has("softcap") or case.has("alibi")
    hidden = case.has("causal") or case.has("window")
    sizes = (None, None, case.queries, case.length, "cuda")
    torch._dynamo.reset()
    return partial(
        torch.compile(flex_attention, dynamic=False),
        *(tensors[name] for name in "qkv"),
        score_mod=changed if has_change else None,
        block_mask=create_block_mask(seen, *sizes) if hidden else None,
        enable_gqa=case.heads != case.kv_heads,
    )
