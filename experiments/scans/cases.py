"""Scans and recurrences, and what computes the same in torch."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np
import torch

Arrays = Mapping[str, np.ndarray]
Call = Callable[[], object]
CHUNK = 64
"""Positions of a chunk of the rival that has a state between chunks."""
MOST_COMPILED = 1024
"""The most positions of the rival that torch compiles: each chunk is a part of its graph."""
MOST_AT_ONCE = 2048
"""The most positions of the rival that has an array of all scores: it takes seconds beyond."""
PRODUCT = "sum[d](q[h,t,d] * k[h,s,d]) * v[h,s,e]"
LINEAR = f"y[h,t,e] = sum[s: s <= t]({PRODUCT})"
STATE_SPACE = f"y[h,t,e] = sum[s: s <= t](exp(l[h,t] - l[h,s]) * {PRODUCT})"
GATED = "y[h,t,e] = sum[s,d: s <= t](exp(l[h,t,d] - l[h,s,d]) * q[h,t,d] * k[h,s,d] * v[h,s,e])"
BEFORE = "inside(S[h,t-1,d,e], 0)"
READ = "y[h,t,e] = sum[d](q[h,t,d] * S[h,t,d,e])"
DELTA = (
    f"u[h,t,e] = sum[d](k[h,t,d] * {BEFORE})\n"
    f"S[h,t,d,e] = {BEFORE} + g[h,t] * k[h,t,d] * (v[h,t,e] - u[h,t,e])\n{READ}"
)
GATED_DELTA = (
    f"R[h,t,d,e] = exp(a[h,t]) * {BEFORE}\n"
    "S[h,t,d,e] = R[h,t,d,e] + g[h,t] * k[h,t,d] * (v[h,t,e] - sum[d](k[h,t,d] * R[h,t,d,e]))\n"
    f"{READ}"
)
SELECTIVE = (
    "z[t,c,n] = exp(-dt[t,c] * r[c,n]) * inside(z[t-1,c,n], 0) + dt[t,c] * x[t,c] * p[t,n]\n"
    "y[t,c] = sum[n](z[t,c,n] * o[t,n])"
)
GATES = "y[h,t,e] = sigmoid(f[h,t,e]) * inside(y[h,t-1,e], 0) + (1 - sigmoid(f[h,t,e])) * x[h,t,e]"


@dataclass(frozen=True)
class Case:
    """A program, the template whose kernels are timed, and those of ``others`` beside them."""

    text: str
    extents: Mapping[str, int]
    template: str
    others: tuple[str, ...]
    rivals: Callable[[Arrays], Mapping[str, Call]]

    def inputs(self, arrays: Arrays) -> Arrays:
        """Return the inputs as models have them: decays at most one, and most near one; and for
        steps, keys of length one and rates from 0 to 1."""
        found = dict(arrays)
        if "l" in found:
            found["l"] = np.cumsum(-np.abs(found["l"]) * 0.05, axis=1).astype(np.float32)
        if "g" in found:
            found["k"] = found["k"] / np.linalg.norm(found["k"], axis=-1, keepdims=True)
        for name in {"g", "dt", "r"} & {*found}:
            found[name] = np.abs(found[name])
        if "a" in found:
            found["a"] = -np.abs(found["a"]) * np.float32(0.05)
        return found


def _sums(axis: int) -> Callable[[Arrays], Mapping[str, Call]]:
    def rivals(arrays: Arrays) -> Mapping[str, Call]:
        """Return sums and copies, all into arrays that are there already."""
        x, own = arrays["x"], np.empty_like(arrays["x"])
        source, found = torch.from_numpy(x), torch.empty(x.shape)
        return {
            "torch": lambda: torch.cumsum(source, axis, out=found),
            "numpy": lambda: np.cumsum(x, axis, out=own),
            "torch copy": lambda: found.copy_(source),
            "numpy copy": lambda: np.copyto(own, x),
        }

    return rivals


def _attention(arrays: Arrays) -> Mapping[str, Call]:
    """Return torch's: all scores at once, and chunks with a state between them."""
    q, k, v = (torch.from_numpy(arrays[name]) for name in "qkv")
    shape = q.shape[:2]
    log = torch.from_numpy(arrays["l"]) if "l" in arrays else torch.zeros(shape)
    chunks = {"torch chunks": lambda: _chunked(q, k, v, log)}
    if shape[1] > MOST_AT_ONCE:
        return chunks
    mask = torch.ones(shape[1], shape[1]).tril()

    def whole() -> torch.Tensor:
        powers = torch.exp((log[:, :, None] - log[:, None]).clamp(max=0)) * mask
        return torch.bmm(torch.bmm(q, k.transpose(1, 2)) * powers, v)

    return {"torch whole": whole, **chunks}


def _chunked(q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, log: torch.Tensor) -> torch.Tensor:
    """Return the sums, chunk by chunk (Dao and Gu, Transformers are SSMs, ICML 2024)."""
    heads, extent, inner = q.shape
    count = extent // CHUNK
    split = [x.reshape(heads * count, CHUNK, -1) for x in (q, k, v)]
    before = torch.cat([torch.zeros(heads, 1), log.view(heads, count, CHUNK)[:, :-1, -1]], 1)
    own = log.reshape(heads * count, CHUNK) - before.reshape(-1, 1)
    end = own[:, -1:]
    mask = torch.ones(CHUNK, CHUNK).tril()
    powers = torch.exp((own[:, :, None] - own[:, None]).clamp(max=0)) * mask
    within = torch.bmm(torch.bmm(split[0], split[1].transpose(1, 2)) * powers, split[2])
    added = torch.bmm((split[1] * torch.exp(end - own)[..., None]).transpose(1, 2), split[2])
    added = added.view(heads, count, inner, -1)
    kept = torch.exp(end).view(heads, count, 1, 1)
    state, states = torch.zeros_like(added[:, 0]), []
    for chunk in range(count):
        states.append(state)
        state = state * kept[:, chunk] + added[:, chunk]
    passed = torch.stack(states, 1).reshape(heads * count, inner, -1)
    found = torch.baddbmm(within, split[0] * torch.exp(own)[..., None], passed)
    return found.view(heads, extent, -1)


def _gated(arrays: Arrays) -> Mapping[str, Call]:
    """Return torch's sums in chunks with a state between them, for decays that fall by little in a
    chunk (Yang and others, Gated Linear Attention Transformers, ICML 2024)."""
    q, k, v, log = (torch.from_numpy(arrays[name]) for name in "qkvl")
    return {"torch chunks": lambda: _gated_chunks(q, k, v, log)}


def _gated_chunks(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, log: torch.Tensor
) -> torch.Tensor:
    heads, extent, inner = q.shape
    count = extent // CHUNK
    split = [x.reshape(heads * count, CHUNK, -1) for x in (q, k, v)]
    ends = log.view(heads, count, CHUNK, inner)[:, :-1, -1:]
    before = torch.cat([torch.zeros(heads, 1, 1, inner), ends], 1)
    own = (log.view(heads, count, CHUNK, inner) - before).view(heads * count, CHUNK, inner)
    end = own[:, -1:]
    read = split[0] * torch.exp(own)
    within = torch.bmm(read, (split[1] * torch.exp(-own)).transpose(1, 2)).tril() @ split[2]
    added = torch.bmm((split[1] * torch.exp(end - own)).transpose(1, 2), split[2])
    added = added.view(heads, count, inner, -1)
    kept = torch.exp(end).view(heads, count, inner, 1)
    state, states = torch.zeros_like(added[:, 0]), []
    for chunk in range(count):
        states.append(state)
        state = state * kept[:, chunk] + added[:, chunk]
    passed = torch.stack(states, 1).reshape(heads * count, inner, -1)
    return torch.baddbmm(within, read, passed).view(heads, extent, -1)


def _delta(arrays: Arrays) -> Mapping[str, Call]:
    """Return torch's: step by step, and in chunks whose products are solved, which torch may
    compile."""
    q, k, v, g = (torch.from_numpy(arrays[name]) for name in "qkvg")
    a = torch.from_numpy(arrays["a"]) if "a" in arrays else torch.zeros(g.shape)
    found = {
        "torch loop": lambda: _delta_steps(q, k, v, g, a),
        "torch chunks": lambda: _delta_chunks(q, k, v, g, a),
    }
    if q.shape[1] <= MOST_COMPILED:
        compiled = torch.compile(_delta_chunks)
        found["torch compiled chunks"] = lambda: compiled(q, k, v, g, a)
    return found


def _delta_steps(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, a: torch.Tensor
) -> torch.Tensor:
    heads, extent, inner = q.shape
    state, found = torch.zeros(heads, inner, v.shape[-1]), torch.empty_like(v)
    kept, scaled = torch.exp(a)[..., None, None], g[..., None] * k
    for t in range(extent):
        state = state * kept[:, t]
        error = v[:, t, None] - torch.bmm(k[:, t, None], state)
        state = torch.baddbmm(state, scaled[:, t, :, None], error)
        found[:, t] = torch.bmm(q[:, t, None], state)[:, 0]
    return found


def _delta_chunks(
    q: torch.Tensor, k: torch.Tensor, v: torch.Tensor, g: torch.Tensor, a: torch.Tensor
) -> torch.Tensor:
    """Return the same, chunk by chunk (Yang and others, Gated Delta Networks, ICLR 2025)."""
    heads, extent, inner = q.shape
    count = extent // CHUNK
    q, k, v = (x.reshape(heads, count, CHUNK, -1) for x in (q, k, v))
    g, log = (x.reshape(heads, count, CHUNK, 1) for x in (g, a))
    log = log.cumsum(2)
    powers = torch.exp((log - log.transpose(2, 3)).clamp(max=0)).tril()
    scores = (k @ k.transpose(2, 3) * powers * g).tril(-1) + torch.eye(CHUNK)
    both = torch.cat([g * v, g * torch.exp(log) * k], -1)
    added, read = torch.linalg.solve_triangular(
        scores, both, upper=False, unitriangular=True
    ).split([v.shape[-1], inner], -1)
    seen, end = (q @ k.transpose(2, 3)) * powers, log[:, :, -1:]
    asked, kept, left = q * torch.exp(log), torch.exp(end), k * torch.exp(end - log)
    state, found = torch.zeros(heads, inner, v.shape[-1]), []
    for chunk in range(count):
        new = added[:, chunk] - read[:, chunk] @ state
        found.append(asked[:, chunk] @ state + seen[:, chunk] @ new)
        state = state * kept[:, chunk] + left[:, chunk].transpose(1, 2) @ new
    return torch.stack(found, 1).reshape(heads, extent, -1)


def _selective(arrays: Arrays) -> Mapping[str, Call]:
    """Return torch's, step by step."""
    dt, x, r, p, o = (torch.from_numpy(arrays[name]) for name in ("dt", "x", "r", "p", "o"))

    def steps() -> torch.Tensor:
        state, found = torch.zeros(r.shape), torch.empty_like(x)
        for t in range(x.shape[0]):
            state = state * torch.exp(-dt[t, :, None] * r)
            state = torch.addr(state, dt[t] * x[t], p[t])
            torch.mv(state, o[t], out=found[t])
        return found

    return {"torch loop": steps}


def _gates(arrays: Arrays) -> Mapping[str, Call]:
    """Return torch's, step by step."""
    f, x = (torch.from_numpy(arrays[name]) for name in "fx")

    def steps() -> torch.Tensor:
        gate, found = torch.sigmoid(f), torch.empty_like(x)
        new, state = (1 - gate) * x, torch.zeros_like(x[:, 0])
        for t in range(x.shape[1]):
            state = torch.addcmul(new[:, t], gate[:, t], state)
            found[:, t] = state
        return found

    return {"torch loop": steps}


def _along(rows: int, columns: int) -> Case:
    text = "y[r,i] = sum[j: j <= i](x[r,j])"
    return Case(text, {"r": rows, "i": columns, "j": columns}, "scan", (), _sums(1))


def _down(rows: int, columns: int) -> Case:
    text = "y[i,r] = sum[j: j <= i](x[j,r])"
    return Case(text, {"r": columns, "i": rows, "j": rows}, "scan", (), _sums(0))


def _state(text: str, extent: int, inner: int, heads: int = 8) -> Case:
    extents = {"h": heads, "t": extent, "s": extent, "d": inner, "e": 64}
    others, rivals = ((), _gated) if text == GATED else (("chained",), _attention)
    return Case(text, extents, "recurrent", others, rivals)


def _steps(text: str, extent: int) -> Case:
    extents = {"h": 8, "t": extent, "d": 64, "e": 64}
    return Case(text, extents, "stepped", (), _delta)


CASES = {
    "cumsum 4096 x 1024": _along(4096, 1024),
    "cumsum 64 x 65536": _along(64, 65536),
    "cumsum 8 x 524288": _along(8, 524288),
    "cumsum 3000 x 777": _along(3000, 777),
    "cumsum down 4096 x 1024": _down(4096, 1024),
    "cumsum down 700 x 3000": _down(700, 3000),
    "linear attention 1024": _state(LINEAR, 1024, 64),
    "linear attention 4096": _state(LINEAR, 4096, 64),
    "state space 1024": _state(STATE_SPACE, 1024, 64),
    "state space 4096": _state(STATE_SPACE, 4096, 64),
    "state space 4096, d=128": _state(STATE_SPACE, 4096, 128, heads=4),
    "gated 1024": _state(GATED, 1024, 64),
    "gated 4096": _state(GATED, 4096, 64),
    "delta rule 1024": _steps(DELTA, 1024),
    "delta rule 4096": _steps(DELTA, 4096),
    "gated delta rule 1024": _steps(GATED_DELTA, 1024),
    "gated delta rule 4096": _steps(GATED_DELTA, 4096),
    "selective scan 1024": Case(
        SELECTIVE, {"t": 1024, "c": 1024, "n": 16}, "stepped", (), _selective
    ),
    "gates 1024": Case(GATES, {"h": 8, "t": 1024, "e": 256}, "stepped", (), _gates),
}
