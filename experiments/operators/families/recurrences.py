"""Linear attention and state-space models: cases for a GPU, and what computes the same.

Arrays lie as flash-linear-attention has them: position before head. Decays are at most one, and
near one, as models have them; where their logarithms are given, quadratic kernels serve, too.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.operators.families.case import Case

PRODUCT = "sum[d](q[b,t,h,d] * k[b,s,h,d]) * v[b,s,h,e]"
LINEAR = f"y[b,t,h,e] = sum[s: s <= t]({PRODUCT})"
RETAINED = f"""a: float32[b,t,h]
l[b,t,h] = sum[s: s <= t](-0.05 * abs(a[b,s,h]))
y[b,t,h,e] = sum[s: s <= t](exp(l[b,t,h] - l[b,s,h]) * {PRODUCT})"""
GIVEN = f"""l: float32[b,t,h]
y[b,t,h,e] = sum[s: s <= t](exp(l[b,t,h] - l[b,s,h]) * {PRODUCT})"""
FALLING = 0.05
"""The most by which a logarithm of a decay falls from one position to the next."""
CHUNK = 64
"""Positions of a chunk in torch."""
ROUNDED = 1.5e-2
"""The error allowed of sums whose factors are rounded to bfloat16, in seven standard deviations."""
OTHERS = "quadratic"
"""The name of our fastest kernel that has no state."""
BY_STEPS = "step by step"
"""The name of our fastest kernel that goes step by step."""
TEMPLATE, STEPPED = "chunked", "stepped"


@dataclass(frozen=True)
class Recurrent(Case):
    """A sum over prefixes whose terms separate."""


def _case(name: str, text: str, b: int, t: int, h: int, d: int, e: int) -> Recurrent:
    extents = {"b": b, "t": t, "s": t, "h": h, "d": d, "e": e}
    title = f"{name} {b}x{t}x{h}, {d} x {e}"
    return Recurrent(text, (*extents.items(), ("dtype", "bfloat16")), title, ROUNDED)


SIZES = ((8, 2048, 16, 128, 128), (8, 2048, 32, 64, 64), (1, 8192, 16, 128, 128))
CASES = (
    *(_case("decays", RETAINED, *sizes) for sizes in SIZES),
    *(_case("linear attention", LINEAR, *sizes) for sizes in SIZES),
    _case("given decays", GIVEN, *SIZES[0]),
    _case("decays", RETAINED, 1, 4096, 64, 128, 64),
    _case("decays", RETAINED, 1, 32768, 16, 128, 128),
)
"""Cases in the order in which they are measured, the most telling first."""


def _falls(tensors: Mapping[str, Any]) -> Any:
    """Return the logarithms of decays from one position to the next; None if there are none."""
    if "l" in tensors:
        log = tensors["l"]
        return log.diff(dim=1, prepend=log[:, :1])
    return -FALLING * tensors["a"].abs() if "a" in tensors else None


def reference(q: Any, k: Any, v: Any, **decays: Any) -> Any:
    """Return the sums, chunk by chunk (Dao and Gu, Transformers are SSMs, ICML 2024)."""
    import torch

    batch, extent, heads, _ = q.shape
    chunk = CHUNK if extent % CHUNK == 0 else extent
    wide = torch.promote_types(q.dtype, torch.float32)
    found = _falls(decays)
    falls = torch.zeros(q.shape[:3], device=q.device) if found is None else found

    def split(x: Any) -> Any:
        return x.reshape(batch, extent // chunk, chunk, heads, -1).transpose(2, 3)

    q, k, v, falls = map(split, (q, k, v, falls.to(wide)))
    log = falls.cumsum(3)
    end = log[:, :, :, -1:]
    powers = torch.exp((log - log.transpose(3, 4)).tril()).tril()
    within = ((q @ k.transpose(3, 4)) * powers).to(v.dtype) @ v
    added = (k * torch.exp(end - log)).to(v.dtype).transpose(3, 4) @ v
    count = extent // chunk
    total = end.reshape(batch, count, heads).cumsum(1)
    before = total - end.reshape(batch, count, heads)
    mask = torch.ones(count, count, device=q.device).tril(-1)[None, :, :, None]
    kept = torch.exp((before[:, :, None] - total[:, None]) * mask) * mask
    states = torch.einsum("bnmh,bmhde->bnhde", kept, added.to(wide))
    read = (q * torch.exp(log)).to(v.dtype) @ states.to(v.dtype)
    return (within + read).transpose(2, 3).reshape(batch, extent, heads, -1)


def libraries(case: Case, tensors: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return the makers of calls of Triton kernels: those of flash-linear-attention."""
    if not isinstance(case, Recurrent):
        return {}
    q, k, v = (tensors[name] for name in "qkv")

    def triton() -> Callable[[], Any]:
        falls = _falls(tensors)
        if falls is None:
            from fla.ops.linear_attn import chunk_linear_attn

            return lambda: chunk_linear_attn(q, k, v, scale=1.0, normalize=False)
        from fla.ops.simple_gla import chunk_simple_gla

        return lambda: chunk_simple_gla(q, k, v, falls, scale=1.0)

    return {"flash-linear-attention": triton}
