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


def _convolution(stride: int, padding: int = 1) -> Callable[[Mapping[str, Tensor]], Tensor]:
    def convolve(t: Mapping[str, Tensor]) -> Tensor:
        groups = t["image"].shape[1] // t["filter"].shape[1]
        return functional.conv2d(t["image"], t["filter"], None, stride, padding, 1, groups)

    return convolve


def _sequence(t: Mapping[str, Tensor]) -> Tensor:
    return functional.conv1d(t["line"], t["filter"], padding=2)


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
"""The cases of the table."""
HELD_OUT = {  # those that nothing was chosen by
    "3 x 3": ("conv2d n=4 c=80 h=35 w=35 o=112 r=3 s=3 padding=1", _convolution(1)),
    "3 x 3, small images": ("conv2d n=16 c=192 h=9 w=9 o=160 r=3 s=3 padding=1", _convolution(1)),
    "3 x 3, stride 2": (
        "conv2d n=4 c=48 h=45 w=45 o=96 r=3 s=3 padding=1 stride=2",
        _convolution(2),
    ),
    "1 x 1": ("conv2d n=4 c=144 h=21 w=21 o=240 r=1 s=1", _convolution(1, 0)),
    "7 x 7, stride 2": (
        "conv2d n=2 c=3 h=160 w=160 o=48 r=7 s=7 padding=3 stride=2",
        _convolution(2, 3),
    ),
    "7 x 7": ("conv2d n=2 c=24 h=50 w=50 o=40 r=7 s=7 padding=3", _convolution(1, 3)),
    "depthwise": (
        "conv2d n=4 c=120 h=38 w=38 o=120 r=3 s=3 padding=1 groups=120",
        _convolution(1),
    ),
    "sequence": ("conv1d n=4 c=72 w=500 o=136 r=5 padding=2", _sequence),
}
"""Convolutions that are compared by each operand apart, and their functions in torch."""
CONVOLUTIONS: Mapping[str, Case] = {
    f"convolution {name}, by the {operand}": Case(operator, (operand,), (), by_torch)
    for name, (operator, by_torch) in HELD_OUT.items()
    for operand in ("line" if name == "sequence" else "image", "filter")
}
