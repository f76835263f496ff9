"""Operators, the operands to differentiate by, what is saved, and the same in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional


@dataclass(frozen=True)
class Case:
    """An operator as words, and the function of its operands by name in torch."""

    operator: str
    wrt: tuple[str, ...]
    saved: tuple[str, ...]
    by_torch: Callable[[Mapping[str, Tensor]], Tensor]


def _rmsnorm(t: Mapping[str, Tensor]) -> Tensor:
    return functional.rms_norm(t["x"], t["x"].shape[-1:], t["weight"], 1e-6)


def _layernorm(t: Mapping[str, Tensor]) -> Tensor:
    return functional.layer_norm(t["x"], t["x"].shape[-1:], t["weight"], t["bias"])


def _cross_entropy(t: Mapping[str, Tensor]) -> Tensor:
    return functional.cross_entropy(t["x"], t["label"].long(), reduction="none")


def _attention(causal: bool) -> Callable[[Mapping[str, Tensor]], Tensor]:
    attend = functional.scaled_dot_product_attention
    return lambda t: attend(t["q"], t["k"], t["v"], is_causal=causal)


def _grouped(t: Mapping[str, Tensor]) -> Tensor:
    attend = functional.scaled_dot_product_attention
    return attend(t["q"], t["k"], t["v"], is_causal=True, enable_gqa=True)


def _convolution(stride: int) -> Callable[[Mapping[str, Tensor]], Tensor]:
    return lambda t: functional.conv2d(t["image"], t["filter"], stride=stride, padding=1)


ATTENTION = "attention b=1 h=4 i=1536 j=1536 d=64"
IMAGES = "conv2d n=8 c=64 h=28 w=28 o=64 r=3 s=3 padding=1"
CASES: Mapping[str, Case] = {
    "softmax": Case("softmax r=4096 c=1024", ("x",), ("y",), lambda t: torch.softmax(t["x"], -1)),
    "log_softmax": Case(
        "log_softmax r=4096 c=1024", ("x",), ("lse",), lambda t: torch.log_softmax(t["x"], -1)
    ),
    "layernorm": Case(
        "layernorm r=4096 c=1024", ("x", "weight", "bias"), ("mean", "rstd"), _layernorm
    ),
    "rmsnorm": Case("rmsnorm r=4096 c=1024", ("x", "weight"), (), _rmsnorm),
    "cross_entropy": Case("cross_entropy r=256 c=32000", ("x",), ("lse",), _cross_entropy),
    "swiglu": Case(
        "swiglu r=4096 c=1024",
        ("gate", "up"),
        (),
        lambda t: functional.silu(t["gate"]) * t["up"],
    ),
    "product": Case("matmul m=512 n=512 k=512", ("A", "B"), (), lambda t: t["A"] @ t["B"]),
    "product, gelu": Case(
        'matmul m=512 n=512 k=512 epilogue="gelu(x + bias[n])"',
        ("A", "B", "bias"),
        ("C_sum",),
        lambda t: functional.gelu(t["A"] @ t["B"] + t["bias"]),
    ),
    "product, relu": Case(
        'matmul m=512 n=512 k=512 epilogue="relu(x + bias[n])"',
        ("A", "B", "bias"),
        ("C_sum",),
        lambda t: functional.relu(t["A"] @ t["B"] + t["bias"]),
    ),
    "attention": Case(ATTENTION, ("q", "k", "v"), ("y", "lse"), _attention(causal=False)),
    "attention, causal": Case(
        f"{ATTENTION} mask=causal", ("q", "k", "v"), ("y", "lse"), _attention(causal=True)
    ),
    "attention, of y": Case(ATTENTION, ("q", "k", "v"), ("y",), _attention(causal=False)),
    "attention, causal, of y": Case(
        f"{ATTENTION} mask=causal", ("q", "k", "v"), ("y",), _attention(causal=True)
    ),
    "attention of groups, causal": Case(
        f"{ATTENTION} mask=causal kv=2", ("q", "k", "v"), ("y", "lse"), _grouped
    ),
    "convolution": Case(IMAGES, ("image", "filter"), (), _convolution(1)),
    "convolution, stride 2": Case(f"{IMAGES} stride=2", ("image", "filter"), (), _convolution(2)),
}
