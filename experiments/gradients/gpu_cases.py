"""Gradients that a GPU computes: their operands, what is saved, and the same in torch.

All arrays are bfloat16. Attention has 16,384 tokens at any length, and 2,048 features of all heads.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial

import torch
from torch import Tensor
from torch.nn import functional
from torch.nn.attention import SDPBackend, sdpa_kernel

TOKENS, FEATURES = 16384, 2048
LENGTHS, HEADS = (1024, 2048, 4096, 8192), (64, 128)
BACKENDS = {"cudnn": SDPBackend.CUDNN_ATTENTION, "flash": SDPBackend.FLASH_ATTENTION}
Tensors = Mapping[str, Tensor]


@dataclass(frozen=True)
class GpuCase:
    """An operator as words, the operands to differentiate by, and what is saved.

    ``saving`` gives the output and what is saved, by name, of operands by name; of one batch entry
    and head if ``by_head``. ``rivals`` are functions of the operands that torch differentiates.
    ``flops`` are those of the gradient; 0 where memory bounds it.
    """

    operator: str
    output: str
    wrt: tuple[str, ...]
    saved: tuple[str, ...]
    saving: Callable[[Tensors], Tensors]
    rivals: Mapping[str, Callable[[Tensors], Tensor]]
    by_head: bool = False
    flops: int = 0


def _attention(length: int, head: int, causal: bool) -> GpuCase:
    batch, heads = TOKENS // length, FEATURES // head
    mask = " mask=causal" if causal else ""
    return GpuCase(
        f"attention b={batch} h={heads} i={length} j={length} d={head} dtype=bfloat16{mask}",
        "y",
        ("q", "k", "v"),
        ("y", "lse"),
        partial(_attended, causal),
        {name: partial(_by_library, causal, backend) for name, backend in BACKENDS.items()},
        by_head=True,
        flops=10 * batch * heads * length * length * head // (2 if causal else 1),
    )


def _attended(causal: bool, t: Tensors) -> Tensors:
    scores = t["q"] @ t["k"].mT * t["q"].shape[-1] ** -0.5
    if causal:
        hidden = torch.ones(scores.shape[-2:], dtype=torch.bool, device=scores.device).triu(1)
        scores = scores.masked_fill(hidden, -torch.inf)
    lse = scores.logsumexp(-1)
    return {"y": torch.exp(scores - lse.unsqueeze(-1)) @ t["v"], "lse": lse}


def _by_library(causal: bool, backend: SDPBackend, t: Tensors) -> Tensor:
    with sdpa_kernel(backend):
        return functional.scaled_dot_product_attention(t["q"], t["k"], t["v"], is_causal=causal)


def _normalised(t: Tensors) -> Tensors:
    x = t["x"]
    mean, rstd = x.mean(-1), (x.var(-1, correction=0) + 1e-5).rsqrt()
    y = (x - mean.unsqueeze(-1)) * rstd.unsqueeze(-1) * t["weight"] + t["bias"]
    return {"y": y, "mean": mean, "rstd": rstd}


def _of_squares(t: Tensors) -> Tensors:
    x = t["x"]
    return {"y": x * ((x * x).mean(-1, keepdim=True) + 1e-6).rsqrt() * t["weight"]}


def _loss(t: Tensors) -> Tensors:
    x, label = t["x"], t["label"].long().unsqueeze(-1)
    lse = x.logsumexp(-1)
    return {"y": lse - x.gather(-1, label).squeeze(-1), "lse": lse}


def _named() -> Iterator[tuple[str, GpuCase]]:
    for head in HEADS:
        for causal in (False, True):
            for length in LENGTHS:
                kind = ", causal" if causal else ""
                yield f"attention {length} x {head}{kind}", _attention(length, head, causal)
    rows = "r=32768 c=4096 dtype=bfloat16"
    yield (
        "layernorm",
        GpuCase(
            f"layernorm {rows}",
            "y",
            ("x", "weight", "bias"),
            ("mean", "rstd"),
            _normalised,
            {"torch": lambda t: functional.layer_norm(t["x"], (4096,), t["weight"], t["bias"])},
        ),
    )
    yield (
        "rmsnorm",
        GpuCase(
            f"rmsnorm {rows}",
            "y",
            ("x", "weight"),
            (),
            _of_squares,
            {"torch": lambda t: functional.rms_norm(t["x"], (4096,), t["weight"], 1e-6)},
        ),
    )
    yield (
        "softmax",
        GpuCase(
            f"softmax {rows}",
            "y",
            ("x",),
            ("y",),
            lambda t: {"y": torch.softmax(t["x"], -1)},
            {"torch": lambda t: torch.softmax(t["x"], -1)},
        ),
    )
    yield (
        "cross_entropy",
        GpuCase(
            "cross_entropy r=8192 c=32000 dtype=bfloat16",
            "y",
            ("x",),
            ("lse",),
            _loss,
            {
                "torch": lambda t: functional.cross_entropy(
                    t["x"], t["label"].long(), reduction="none"
                )
            },
        ),
    )


GPU_CASES: Mapping[str, GpuCase] = dict(_named())
