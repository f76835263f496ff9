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
MOST_AT_ONCE = 2048
"""The most positions of the rival that has an array of all scores: it takes seconds beyond."""
PRODUCT = "sum[d](q[h,t,d] * k[h,s,d]) * v[h,s,e]"
LINEAR = f"y[h,t,e] = sum[s: s <= t]({PRODUCT})"
STATE_SPACE = f"y[h,t,e] = sum[s: s <= t](exp(l[h,t] - l[h,s]) * {PRODUCT})"
GATED = "y[h,t,e] = sum[s,d: s <= t](exp(l[h,t,d] - l[h,s,d]) * q[h,t,d] * k[h,s,d] * v[h,s,e])"


@dataclass(frozen=True)
class Case:
    """A program, the template whose kernels are timed, and those of ``others`` beside them."""

    text: str
    extents: Mapping[str, int]
    template: str
    others: tuple[str, ...]
    rivals: Callable[[Arrays], Mapping[str, Call]]

    def inputs(self, arrays: Arrays) -> Arrays:
        """Return the inputs with decays as models have them: at most one, and most near one."""
        found = dict(arrays)
        if "l" in found:
            found["l"] = np.cumsum(-np.abs(found["l"]) * 0.05, axis=1).astype(np.float32)
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
}
