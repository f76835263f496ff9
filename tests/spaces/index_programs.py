"""Programs that read indices, in every way that kernels take them, and indices that are wrong."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

Inputs = dict[str, np.ndarray]
Pair = tuple[Inputs, Inputs]

SCORE = "sum[d](q[b,h,i,d] * k[b,h // 2,j,d]) * 0.2"
VALUE = "v[b,h // 2,j,e]"
ATTENTION = f"y[b,h,i,e] = sum[j](softmax[j]({SCORE}) * {VALUE})"
PAGED = (
    "t: int32[b,4](index < 9); k: DTYPE[9,16,2,24]; v: DTYPE[9,16,2,24]; "
    "where j < n[b]; y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * "
    "k[t[b,j // 16],j % 16,h // 2,d])) * v[t[b,j // 16],j % 16,h // 2,e])"
)
HEADS = "b=2 h=4 i=20 j=53 d=24 e=24"
PROGRAMS = {
    "embedding": "embedding t=7 words=19 d=24",
    "loss": "cross_entropy r=5 c=33",
    "rows and columns": '"t: int32[40](index < 9); y[i,j] = x[t[i],j] + v[t[j]]" i=40 j=40',
    "8 bits": '"t: int8[40](index < 9); y[i,j] = x[t[i],j] + v[t[j]]" i=40 j=40',
    "16 bits": '"t: uint16[40](index < 9); y[i,j] = x[t[i],j] + v[t[j]]" i=40 j=40',
    "a table of a table": '"t: int32[12](index < 9); u: int32[9](index < 5); y[i,j] = x[u[t[i]],j]"'
    " i=12 j=40",
    "normalised rows": '"t: int32[12](index < 9); y[i,j] = softmax[j](x[t[i],j])" i=12 j=70',
    "offsets": '"n: int32[b](index < 54); y[b,j] = x[b,j + n[b]]" b=5 j=53',
    "images": '"n: int32[b](index < 4); y[b,c,p,q] = max[r,s](x[n[b],c,p + r,q + s])"'
    " b=3 p=5 q=5 c=4 r=3 s=3",
    "rows of a factor": '"e: int32[i](index < 30); y[i,j] = sum[k](x[e[i],k] * w[k,j])"'
    " i=19 j=16 k=16 dtype=DTYPE",
    "matrices": '"e: int32[b](index < 3); y[b,i,j] = sum[k](x[b,i,k] * w[e[b],k,j])"'
    " b=4 i=9 j=8 k=16",
    "beside a product": '"e: int32[i](index < 30); y[i,j] = sum[k](x[i,k] * w[k,j]) + b[e[i],j]"'
    " i=19 j=8 k=16 dtype=DTYPE",
    "lengths": f'"n: int32[b](index < 54); where j < n[b]; {ATTENTION}" {HEADS} dtype=DTYPE',
    "lengths of both ends": '"n: int32[b](index < 54); m: int32[b](index < 54); where j < n[b]; '
    f'where j >= m[b]; {ATTENTION}" {HEADS} dtype=DTYPE',
    "pages": f'"n: int32[b](index < 54); {PAGED}" {HEADS} dtype=DTYPE',
    "a bias that is chosen": '"s: int32[b](index < 5); y[b,h,i,e] = sum[j](softmax[j]('
    f'{SCORE} + bias[s[b],j]) * {VALUE})" {HEADS} dtype=DTYPE',
    "slots of a cache": '"s: int32[b](index < 5); y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] '
    f'* k[s[b],h // 2,j,d])) * v[s[b],h // 2,j,e])" {HEADS} dtype=DTYPE',
}
"""Kernels read the nearest entry for an index that a table does not have."""
COMPARED = {
    "documents": '"own: int32[b,i](index < 3); other: int32[b,j](index < 3); '
    f'where own[b,i] == other[b,j]; {ATTENTION}" {HEADS} dtype=DTYPE',
    "one score": '"l: int32[i](index < 53); z[i,j] = sum[d](x[i,d] * w[j,d]); '
    'y[i] = logsumexp[j](z[i,j]) - z[i,l[i]]" i=45 j=53 d=24 dtype=DTYPE',
    "one of many": '"e: int32[i](index < 3); y[g,j] = sum[i](select(e[i] == g, x[i,j], 0))"'
    " i=9 g=3 j=8",
}
"""Indices that kernels compare, and read nothing at."""
SORTED = {
    "segments": "grouped_matmul t=37 n=24 k=40 experts=5 dtype=DTYPE",
    "segments of chosen rows": "grouped_matmul t=37 n=24 k=40 experts=5 rows=11 dtype=DTYPE",
    "more segments than rows": "grouped_matmul t=6 n=40 k=40 experts=50 b=col dtype=DTYPE",
}
"""Tables that are to be sorted."""


def made(name: str, dtype: str) -> Workload:
    """One of the programs, its floats of ``dtype`` where kernels multiply them."""
    return workload({**PROGRAMS, **COMPARED, **SORTED}[name].replace("DTYPE", dtype))


def beyond(w: Workload) -> Iterator[Pair]:
    """Inputs whose indices are beyond their limits, and the same with the nearest ones within;
    those of sorted tables are sorted."""
    drawn = w.make_inputs(0)
    for least, most in ((-(2**31), 2**31 - 1), (-1, None), (-(2**31), 0), (2**31 - 1, 2**31 - 1)):
        wild, near = dict(drawn), dict(drawn)
        for table in (operand for operand in w.inputs if operand.drawn):
            entries, limits = drawn[table.name].astype(np.int64), np.iinfo(table.element.numpy)
            flat = entries.reshape(-1)
            flat[::3], flat[1::3] = (table.drawn.below if most is None else most), least
            if table.drawn.sorted:
                flat.sort()
            wild[table.name] = entries.clip(limits.min, limits.max).astype(limits.dtype)
            near[table.name] = wild[table.name].clip(0, table.drawn.below - 1)
        yield wild, near


def unsorted(w: Workload) -> Iterator[Inputs]:
    """Inputs whose sorted tables fall: all the way, at random, and with entries beyond."""
    drawn = w.make_inputs(0)
    (table,) = (o for o in w.inputs if o.drawn and o.drawn.sorted)
    entries, below = drawn[table.name], table.drawn.below
    generator = np.random.default_rng(0)
    beyond = generator.choice([-(2**31), -1, 0, below - 1, below, 2**31 - 1], table.size)
    for tried in (entries[::-1], generator.permutation(entries), beyond, np.sort(beyond)[::-1]):
        yield drawn | {table.name: tried.astype(np.int32)}
