"""Attention written in Triton, as its tutorial on fused attention describes it: a program has a
block of queries, and walks over blocks of keys with a running maximum and sum, first those that all
of its queries see, then those on the diagonal. Needs triton and a GPU.

Reference: Triton's tutorial 06, after Dao, FlashAttention-2 (2023). The lines are our own.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
import triton
import triton.language as tl
from triton.tools.tensor_descriptor import TensorDescriptor

LOG2_E = 1.4426950408889634


def _shaped(given: dict[str, Any]) -> None:
    """Set the shapes of the boxes that TMA moves, once the blocks are chosen."""
    depth = given["depth"]
    given["queries"].block_shape = given["output"].block_shape = [given["row_count"], depth]
    given["keys"].block_shape = given["values"].block_shape = [given["key_count"], depth]


CONFIGS = [
    triton.Config(
        {"row_count": rows, "key_count": keys},
        num_stages=stages,
        num_warps=warps,
        pre_hook=_shaped,
    )
    for rows in (64, 128)
    for keys in (32, 64, 128)
    for stages in (2, 3, 4)
    for warps in (4, 8)
    if keys <= rows and not (rows * keys < 128 * 128 and warps == 8)
]
"""The tutorial's configurations: small blocks take four warps, and a diagonal is of whole blocks of
keys."""


@triton.jit
def _walk(
    sums, total, most, rows, keys, values, start, end, base, row0, scale,
    row_count: tl.constexpr, key_count: tl.constexpr, hides: tl.constexpr,
):  # fmt: skip
    """Walk over the keys from ``start`` to ``end``; later ones than a row are hidden if
    ``hides``."""
    own = row0 + tl.arange(0, row_count)
    for first in tl.range(start, end, key_count):
        first = tl.multiple_of(first, key_count)
        score = tl.dot(rows, keys.load([base + first, 0]).T)
        if hides:
            seen = own[:, None] >= first + tl.arange(0, key_count)[None, :]
            score = score * scale + tl.where(seen, 0.0, -1.0e6)
            new = tl.maximum(most, tl.max(score, 1))
            score -= new[:, None]
        else:
            new = tl.maximum(most, tl.max(score, 1) * scale)
            score = score * scale - new[:, None]
        weights = tl.math.exp2(score)
        factor = tl.math.exp2(most - new)
        total = total * factor + tl.sum(weights, 1)
        sums = sums * factor[:, None]
        sums = tl.dot(weights.to(values.dtype), values.load([base + first, 0]), sums)
        most = new
    return sums, total, most


@triton.autotune(CONFIGS, key=["length", "depth", "group", "causal"])
@triton.jit
def _attention(
    queries, keys, values, output, norm, scale, length,
    depth: tl.constexpr, group: tl.constexpr, causal: tl.constexpr,
    row_count: tl.constexpr, key_count: tl.constexpr,
):  # fmt: skip
    """Compute a block of rows of a head."""
    block, head = tl.program_id(0), tl.program_id(1)
    row0, base = block * row_count, head // group * length
    rows = queries.load([head * length + row0, 0])
    most = tl.full([row_count], -float("inf"), tl.float32)
    total = tl.zeros([row_count], tl.float32)
    sums = tl.zeros([row_count, depth], tl.float32)
    whole = row0 if causal else length
    sums, total, most = _walk(
        sums, total, most, rows, keys, values, 0, whole, base, row0, scale,
        row_count, key_count, False,
    )  # fmt: skip
    if causal:
        sums, total, most = _walk(
            sums, total, most, rows, keys, values, row0, row0 + row_count, base, row0, scale,
            row_count, key_count, True,
        )  # fmt: skip
    tl.store(norm + head * length + row0 + tl.arange(0, row_count), most + tl.math.log2(total))
    output.store([head * length + row0, 0], (sums / total[:, None]).to(output.dtype))


def why_not(form: str, queries: int, length: int) -> str:
    """Say why the tutorial has no kernel of a form; empty if it has one."""
    if form not in ("", "causal"):
        return f"the tutorial has no {form}"
    return "" if queries == length else "the tutorial has as many queries as keys"


def attention(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, causal: bool
) -> Callable[[], torch.Tensor]:
    """Return a call for queries ``[b, h, n, d]`` and keys of as many positions; heads may share
    keys."""
    batch, heads, length, depth = q.shape
    output = torch.empty_like(q)
    norm = torch.empty(q.shape[:-1], dtype=torch.float32, device=q.device)
    flat = [
        TensorDescriptor(t, [t.numel() // depth, depth], [depth, 1], [1, 1])
        for t in (q, k, v, output)
    ]

    def call() -> torch.Tensor:
        _attention[lambda chosen: (triton.cdiv(length, chosen["row_count"]), batch * heads)](
            *flat, norm, LOG2_E / depth**0.5, length, depth, heads // k.shape[1], causal
        )
        return output

    return call
