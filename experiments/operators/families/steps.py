"""Delta rules, gated linear attention and selective scans: cases for a GPU whose states go step by
step, and what computes the same.

Arrays lie as flash-linear-attention has them: position before head. Keys have a length of about
one, rates and decays are from 0 to 1, as models have them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from experiments.operators.families.case import Case
from experiments.operators.families.recurrences import CHUNK, FALLING, ROUNDED

LENGTH = 0.15
"""The factor that gives random keys of 128 numbers a length of about one."""
BEFORE = "inside(S[b,t-1,h,d,e], 0)"
READ = "y[b,t,h,e] = sum[d](q[b,t,h,d] * S[b,t,h,d,e])"
DELTA = f"""g: float32[b,t,h]
u[b,t,h,e] = sum[d]({LENGTH} * k[b,t,h,d] * {BEFORE})
S[b,t,h,d,e] = {BEFORE} + {LENGTH} * abs(g[b,t,h]) * k[b,t,h,d] * (v[b,t,h,e] - u[b,t,h,e])
{READ}"""
GATED_DELTA = f"""g: float32[b,t,h]
a: float32[b,t,h]
R[b,t,h,d,e] = exp(-{FALLING} * abs(a[b,t,h])) * {BEFORE}
u[b,t,h,e] = sum[d]({LENGTH} * k[b,t,h,d] * R[b,t,h,d,e])
S[b,t,h,d,e] = R[b,t,h,d,e] + {LENGTH} * abs(g[b,t,h]) * k[b,t,h,d] * (v[b,t,h,e] - u[b,t,h,e])
{READ}"""
GATED = f"""a: float32[b,t,h,d]
l[b,t,h,d] = sum[s: s <= t](-{FALLING} * abs(a[b,s,h,d]))
w[b,t,s,h,d] = exp(l[b,t,h,d] - l[b,s,h,d]) * q[b,t,h,d] * k[b,s,h,d]
y[b,t,h,e] = sum[s,d: s <= t](w[b,t,s,h,d] * v[b,s,h,e])"""
SELECTIVE = """r: float32[c,n]
m[b,t,c,n] = exp(-abs(w[b,t,c] * r[c,n])) * inside(z[b,t-1,c,n], 0)
z[b,t,c,n] = m[b,t,c,n] + abs(w[b,t,c]) * x[b,t,c] * p[b,t,n]
y[b,t,c] = sum[n](z[b,t,c,n] * o[b,t,n])"""


@dataclass(frozen=True)
class Stepwise(Case):
    """A state that goes step by step. Torch compiles none: each step is a part of its graph."""


def _case(name: str, text: str, **extents: int) -> Stepwise:
    sizes = "x".join(str(n) for axis, n in extents.items() if axis != "s")
    return Stepwise(text, (*extents.items(), ("dtype", "bfloat16")), f"{name} {sizes}", ROUNDED)


def _heads(name: str, text: str, b: int, t: int, h: int, d: int) -> Stepwise:
    prefix = {"s": t} if text == GATED else {}
    return _case(name, text, b=b, t=t, **prefix, h=h, d=d, e=d)


CASES = (
    _heads("delta rule", DELTA, 8, 2048, 16, 128),
    _heads("gated delta rule", GATED_DELTA, 8, 2048, 16, 128),
    _heads("gated linear attention", GATED, 8, 2048, 16, 64),
    _case("selective scan", SELECTIVE, b=8, t=2048, c=2048, n=16),
    _heads("delta rule", DELTA, 1, 8192, 16, 128),
    _heads("delta rule", DELTA, 8, 2048, 32, 64),
)
"""Cases in the order in which they are measured, the most telling first."""


def delta(q: Any, k: Any, v: Any, g: Any, a: Any = None) -> Any:
    """Return the states that keys read, chunk by chunk (Yang and others, Gated Delta Networks, ICLR
    2025)."""
    import torch

    batch, extent, heads, _ = q.shape
    chunk = CHUNK if extent % CHUNK == 0 else extent
    wide = torch.promote_types(q.dtype, torch.float32)
    falls = torch.zeros_like(g) if a is None else -FALLING * a.abs()

    def split(x: Any) -> Any:
        parts = x.to(wide).reshape(batch, extent // chunk, chunk, heads, -1)
        return parts.permute(1, 0, 3, 2, 4)

    q, k, v, rate, log = map(split, (q, LENGTH * k.to(wide), v, g.abs(), falls))
    log = log.cumsum(-2)
    powers = torch.exp((log - log.transpose(-1, -2)).tril()).tril()
    scores = (k @ k.transpose(-1, -2) * powers * rate).tril(-1)
    both = torch.cat([rate * v, rate * torch.exp(log) * k], -1)
    identity = torch.eye(chunk, device=q.device, dtype=wide)
    solved = torch.linalg.solve_triangular(scores + identity, both, upper=False, unitriangular=True)
    added, read = solved.split([v.shape[-1], k.shape[-1]], -1)
    seen, end = q @ k.transpose(-1, -2) * powers, log[..., -1:, :]
    asked, kept, left = q * torch.exp(log), torch.exp(end), k * torch.exp(end - log)
    state, found = torch.zeros_like(k[0].transpose(-1, -2) @ v[0]), []
    for n in range(extent // chunk):
        new = added[n] - read[n] @ state
        found.append(asked[n] @ state + seen[n] @ new)
        state = state * kept[n] + left[n].transpose(-1, -2) @ new
    return torch.stack(found).permute(1, 0, 3, 2, 4).reshape(batch, extent, heads, -1)


def gated(q: Any, k: Any, v: Any, a: Any) -> Any:
    """Return gated linear attention, step by step."""
    import torch

    wide = torch.promote_types(q.dtype, torch.float32)
    q, k, v, kept = (x.to(wide) for x in (q, k, v, torch.exp(-FALLING * a.abs())))
    state, found = torch.zeros_like(k[:, 0, :, :, None] * v[:, 0, :, None]), torch.empty_like(v)
    for t in range(q.shape[1]):
        state = state * kept[:, t, :, :, None] + k[:, t, :, :, None] * v[:, t, :, None]
        found[:, t] = (q[:, t, :, None] @ state)[:, :, 0]
    return found


def selective(w: Any, r: Any, x: Any, p: Any, o: Any) -> Any:
    """Return a selective scan, step by step."""
    import torch

    wide = torch.promote_types(x.dtype, torch.float32)
    w, r, x, p, o = (each.to(wide) for each in (w.abs(), r.abs(), x, p, o))
    state, found = torch.zeros_like(x[:, 0, :, None] * p[:, 0, None]), torch.empty_like(x)
    for t in range(x.shape[1]):
        moved = torch.exp(-w[:, t, :, None] * r)
        state = state * moved + (w[:, t] * x[:, t])[..., None] * p[:, t, None]
        found[:, t] = (state @ o[:, t, :, None])[..., 0]
    return found


def libraries(case: Case, tensors: Mapping[str, Any]) -> dict[str, Callable[[], Any]]:
    """Return the makers of calls of Triton kernels: those of flash-linear-attention."""
    if not isinstance(case, Stepwise) or case.operator == SELECTIVE:
        return {}
    q, v = tensors["q"], tensors["v"]

    def triton() -> Callable[[], Any]:
        if case.operator == GATED:
            from fla.ops.gla import chunk_gla

            falls = -FALLING * tensors["a"].abs()
            return lambda: chunk_gla(q, tensors["k"], v, falls, scale=1.0)
        keys, rate = LENGTH * tensors["k"], tensors["g"].abs()
        if case.operator == DELTA:
            from fla.ops.delta_rule import chunk_delta_rule

            return lambda: chunk_delta_rule(q, keys, v, rate, scale=1.0)
        from fla.ops.gated_delta_rule import chunk_gated_delta_rule

        falls = -FALLING * tensors["a"].abs()
        return lambda: chunk_gated_delta_rule(q, keys, v, falls, rate, scale=1.0)

    return {"flash-linear-attention": triton}
