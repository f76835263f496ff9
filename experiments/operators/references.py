"""The operators in torch, on tensors by the names of their operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

Tensors = Mapping[str, Any]


def softmax(x: Any) -> Any:
    """Rows of positive numbers that add up to 1."""
    import torch

    return torch.softmax(x, -1)


def log_softmax(x: Any) -> Any:
    """The logarithm of each row's softmax."""
    import torch

    return torch.log_softmax(x, -1)


def logsumexp(x: Any) -> Any:
    """The logarithm of the sum of each row's exponentials."""
    import torch

    return torch.logsumexp(x, -1)


def cross_entropy(label: Any, x: Any) -> Any:
    """Minus the logarithm of the softmax at each row's label."""
    import torch

    return torch.nn.functional.cross_entropy(x, label.long(), reduction="none")


def layernorm(x: Any, weight: Any, bias: Any) -> Any:
    """Rows normalised by mean and variance."""
    import torch

    return torch.nn.functional.layer_norm(x, x.shape[-1:], weight, bias, 1e-5)


def rmsnorm(x: Any, weight: Any) -> Any:
    """Rows normalised by the root of their mean square."""
    import torch

    return torch.nn.functional.rms_norm(x, x.shape[-1:], weight, 1e-6)


def swiglu(gate: Any, up: Any) -> Any:
    """``silu(gate) * up``."""
    import torch

    return torch.nn.functional.silu(gate) * up


REFERENCES: Mapping[str, Callable[..., Any]] = {
    f.__name__: f
    for f in (softmax, log_softmax, logsumexp, cross_entropy, layernorm, rmsnorm, swiglu)
}
"""By the operator's name; arguments are called like operands."""
