"""The operators in torch, on tensors by the names of their operands."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache
from typing import Any

from experiments.operators.families import recurrences, saved, segments, steps, windows
from experiments.operators.families.case import Case
from experiments.operators.families.cases import (
    CHANNELS_LAST,
    CUMSUM,
    CUMSUM_DOWN,
    FUSED,
    HEADS,
    LOSS,
    ROUTED,
    TRANSPOSED,
)

Tensors = Mapping[str, Any]


def softmax(x: Any) -> Any:
    """Return the rows of positive numbers that add up to 1."""
    import torch

    return torch.softmax(x, -1)


def log_softmax(x: Any) -> Any:
    """Return the logarithm of each row's softmax."""
    import torch

    return torch.log_softmax(x, -1)


def logsumexp(x: Any) -> Any:
    """Return the logarithm of the sum of each row's exponentials."""
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
    """Return ``silu(gate) * up``."""
    import torch

    return torch.nn.functional.silu(gate) * up


def gated_matmul(A: Any, gate: Any, up: Any) -> Any:  # noqa: N803
    """Return two products with one matrix, the first the gate of the second."""
    import torch

    return torch.nn.functional.silu(A @ gate) * (A @ up)


def rmsnorm_matmul(A: Any, weight: Any, B: Any) -> Any:  # noqa: N803
    """Return a product with normalised rows."""
    return rmsnorm(A, weight) @ B


def routed(x: Any, u: Any) -> Any:
    """Return the place of each row's greatest score, and its share of the softmax."""
    import torch

    scores = x @ u.t()
    wide = torch.promote_types(scores.dtype, torch.float32)
    share, place = torch.softmax(scores, -1, dtype=wide).max(-1)
    return place, share


def loss(l: Any, x: Any, w: Any) -> Any:  # noqa: E741
    """Return a linear layer with its cross-entropy, its logits in float32 at least."""
    import torch

    logits = x @ w.t()
    wide = torch.promote_types(logits.dtype, torch.float32)
    return torch.nn.functional.cross_entropy(logits.to(wide), l.long(), reduction="none")


def rope(x: Any, cosine: Any, sine: Any) -> Any:
    """Return the halves of each head turned by the angles of its position."""
    import torch

    first, second = x.chunk(2, -1)
    turned = torch.cat((-second, first), -1)
    return x * cosine[:, None] + turned * sine[:, None]


def embedding(token: Any, table: Any) -> Any:
    """Return the rows of a table."""
    import torch

    return torch.nn.functional.embedding(token, table)


def fused_transposition(x: Any, b: Any) -> Any:
    """Return a transposition with a bias and a relu."""
    import torch

    return torch.relu(x + b[:, None]).t().contiguous()


def attention(case: Case) -> Mapping[str, Callable[..., Any]]:
    """Compute attention unfused, and by torch's own operator, which serves no softcap."""
    import torch

    given = dict(case.parameters)
    past = int(given["j"]) - int(given["i"])
    shared = int(given["h"]) // int(given.get("kv", given["h"]))
    causal = given.get("mask") == "causal" and int(given["i"]) > 1

    @cache
    def seen(place: Any) -> tuple[Any, Any]:
        """Keys less queries, and which pairs see each other."""
        own = torch.arange(int(given["i"]), device=place)[:, None] + past
        keys = torch.arange(int(given["j"]), device=place)[None]
        reach = int(given.get("window", 0) or given["j"])
        return keys - own, (keys <= own) & (own - keys < reach) if causal else None

    plain = causal and "window" not in given and not past
    capped = float(given.get("softcap", 0))

    def eager(q: Any, k: Any, v: Any, slope: Any = None) -> Any:
        k, v = (x.repeat_interleave(shared, 1) for x in (k, v))
        scores = q @ k.transpose(-1, -2) * q.shape[-1] ** -0.5
        scores = capped * torch.tanh(scores / capped) if capped else scores
        apart, mask = seen(q.device)
        scores = scores if slope is None else scores + slope[:, None, None] * apart
        if mask is not None:
            scores = scores.masked_fill(~mask, -torch.inf)
        return torch.softmax(scores, -1) @ v

    def fused(q: Any, k: Any, v: Any, slope: Any = None) -> Any:
        apart, mask = seen(q.device)
        masked: dict[str, Any] = {"is_causal": True} if plain else {"attn_mask": mask}
        if slope is not None:
            bias = slope[:, None, None] * apart
            hidden = bias if mask is None else bias.masked_fill(~mask, -torch.inf)
            masked = {"attn_mask": hidden[None]}
        return torch.nn.functional.scaled_dot_product_attention(
            q, k, v, enable_gqa=shared > 1, **masked
        )

    return {"eager": eager} if capped else {"eager": eager, "sdpa": fused}


_NORMS = (softmax, log_softmax, logsumexp, cross_entropy, layernorm, rmsnorm)
_MAPS = (swiglu, rope, embedding)
_SEVERAL = (gated_matmul, rmsnorm_matmul)

REFERENCES: Mapping[str, Callable[..., Any]] = {
    **{function.__name__: function for function in (*_NORMS, *_MAPS, *_SEVERAL)},
    TRANSPOSED: lambda x: x.t().contiguous(),
    FUSED: fused_transposition,
    ROUTED: routed,
    LOSS: loss,
    CHANNELS_LAST: lambda x: x.permute(0, 2, 3, 1).contiguous(),
    HEADS: lambda x: x.permute(0, 2, 1, 3).contiguous(),
    CUMSUM: lambda x: x.cumsum(1),
    CUMSUM_DOWN: lambda x: x.cumsum(0),
    recurrences.LINEAR: recurrences.reference,
    recurrences.RETAINED: recurrences.reference,
    recurrences.GIVEN: recurrences.reference,
    steps.DELTA: steps.delta,
    steps.GATED_DELTA: steps.delta,
    steps.GATED: steps.gated,
    steps.SELECTIVE: steps.selective,
    saved.TEXT: saved.reference,
}
"""References by the operator's name, or a program's text; arguments are called like operands."""


def references(case: Case) -> Mapping[str, Callable[..., Any]]:
    """Return the functions of torch for a case, by name. ``eager`` is written as a compiler likes
    it."""
    if case.operator == "attention":
        return attention(case)
    if isinstance(case, segments.Segmented):
        return {"eager": segments.by_groups}
    return {"eager": windows.reference(case) or REFERENCES[case.operator]}
