"""Right chained kernels of TMA and wgmma, hard cases of all kinds."""

from __future__ import annotations

from dataclasses import replace

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.spaces.chained_programs import form
from tilewright.spaces.cuda.chained_hopper.template import ChainedHopper
from tilewright.spaces.cuda.target import CudaTarget, cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

TARGET = cuda_target("sm_90a")
SMALL = replace(TARGET, multiprocessors=2)
USUAL: dict[str, Value] = {
    "warpgroups": 2,
    "blocks_per_sm": 1,
    "keys": 64,
    "overlap": 1,
    "chain_overlap": 1,
    "query_storage": "shared",
    "tile_scheduler": "grid",
    "query_buffers": 1,
    "stages": 2,
    "ping_pong": 1,
    "rescale": "late",
    "head_group": 1,
    "splits": 1,
    "merge": "last",
    "skip_per_warpgroup": 0,
}


def attention(**changes: int | str) -> Workload:
    usual = {"b": 1, "h": 1, "i": 150, "j": 150, "d": 64, "dtype": "float16"}
    return workload("attention", **(usual | changes))


def space_of(w: Workload, target: CudaTarget = SMALL) -> Space:
    return Space(w, target, [ChainedHopper(w, target)])


@deferred
def case(w: Workload, **changes: Value) -> Case:
    """The workload, and the kernel of the usual schedule with some decisions changed."""
    return w, space_of(w).lower(Schedule("chained_hopper", tuple((USUAL | changes).items())))


HALVES = "q: float16\nk: float16\nv: float16\ny: float16\n"
PLAIN = "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h,j,d])) * v[b,h,j,e])"


def program(text: str, **changes: int) -> Workload:
    """A text of halves."""
    return workload(HALVES + text, **({"i": 100, "j": 100, "d": 64, "e": 64} | changes))


def of_form(name: str, **changes: Value) -> Case:
    """One of the usual forms; sigmoids need the range of bfloat16, rows multiples of 16 bytes."""
    dtype = "bfloat16" if name in ("no chain", "half precision") else "float16"
    w = Workload("program", (), form(name, dtype, e=24), "")
    return case(w, **{"warpgroups": 1, "ping_pong": 0, "keys": 32, **changes})


CAUSAL = attention(mask="causal", dtype="bfloat16")
STEEP = program(f"where j <= i\n{PLAIN}", b=1, h=1, i=150, j=150)
"""Its scores are far apart, so that a correction left out shows."""
CASES = {
    "plain": case(attention()),
    "apart": case(STEEP, overlap=0, chain_overlap=0),
    "three warpgroups": case(
        CAUSAL, warpgroups=3, keys=80, rescale="always", stages=3, skip_per_warpgroup=1
    ),
    "tickets": case(
        attention(h=4, mask="causal"),
        tile_scheduler="tickets",
        query_buffers=2,
        head_group=4,
        stages=3,
    ),
    "grouped heads": case(attention(h=4, kv=2, b=2, i=70, j=90)),
    "window": case(attention(window=20, mask="causal"), keys=32, skip_per_warpgroup=1),
    "keys in parts": case(
        attention(h=4, kv=1, i=16, j=150, mask="causal"),
        warpgroups=1,
        ping_pong=0,
        keys=32,
        splits=4,
    ),
    "parts for a second kernel": case(
        attention(h=6, kv=1, i=16, j=150, d=40, mask="causal"), keys=32, splits=4, merge="kernel"
    ),
    "a second kernel that begins early": case(
        attention(h=6, kv=1, i=16, j=150, d=40, mask="causal"), keys=32, splits=4, merge="early"
    ),
    "parts for a cluster": case(
        attention(h=4, kv=1, i=32, j=150, mask="causal"),
        keys=64,
        stages=3,
        splits=2,
        merge="cluster",
    ),
    "more of a cluster than columns": case(
        attention(h=4, kv=1, i=16, j=200, d=40, mask="causal"),
        warpgroups=1,
        ping_pong=0,
        keys=48,
        stages=4,
        splits=4,
        merge="cluster",
    ),
    "rows without a key": case(program(f"where j < i - 4\n{PLAIN}", b=1, h=1, i=150, j=90)),
    "documents": of_form("documents", rescale="moved"),
    "scores near zero": case(
        attention(h=1, i=64, j=90, softcap=40.0, mask="causal"),
        warpgroups=1,
        ping_pong=0,
        chain_overlap=2,
    ),
    "maxima beside sums": case(STEEP, chain_overlap=2, query_storage="registers"),
    "softcap": case(
        attention(h=4, kv=2, i=70, j=90, softcap=0.25, alibi=1, mask="causal"),
        warpgroups=1,
        ping_pong=0,
    ),
}
FURTHER = {
    "keys along memory": case(
        workload(
            "x: float16\nu: float16\nv: float16\ny: float16\n"
            "y[i,e] = sum[j](softmax[j](sum[d](x[i,d] * u[d,j])) * v[j,e])",
            i=100,
            j=136,
            d=72,
            e=64,
        ),
        keys=80,
    ),
    "parts by tickets": case(
        attention(h=2, i=130, j=150, mask="causal", window=40),
        splits=2,
        keys=64,
        tile_scheduler="tickets",
        query_buffers=2,
        skip_per_warpgroup=1,
        overlap=0,
        chain_overlap=0,
    ),
    "parts of two outputs": case(
        program(
            "where j < i - 4\np[b,h,i,j] = sum[d](q[b,h,i,d] * k[b,h,j,d])\n"
            "y[b,h,i,e] = sum[j](softmax[j](p[b,h,i,j]) * v[b,h,j,e])\n"
            "l[b,h,i] = logsumexp[j](p[b,h,i,j])\n-> y, l",
            b=1,
            h=3,
            i=81,
            j=90,
            e=24,
        ),
        splits=2,
        keys=32,
        merge="kernel",
        tile_scheduler="tickets",
        query_buffers=2,
        overlap=0,
        chain_overlap=0,
    ),
    "parts without keys": case(
        attention(h=2, i=128, j=128, mask="causal"),
        warpgroups=1,
        ping_pong=0,
        keys=64,
        splits=2,
        rescale="moved",
        tile_scheduler="persistent",
        query_buffers=2,
    ),
    "free": case(STEEP, ping_pong=0, rescale="moved"),
    "rows in registers": case(CAUSAL, query_storage="registers", overlap=0, chain_overlap=0),
    "walking": case(attention(h=6), tile_scheduler="persistent", query_buffers=2, head_group=3),
    "own keys, in turn": case(
        STEEP, skip_per_warpgroup=1, overlap=0, chain_overlap=0, keys=48, stages=4
    ),
    "heads stacked as rows": case(attention(h=8, kv=2, i=32, mask="causal"), keys=48),
    "lengths of a call": case(
        program(f"n: int32[b](index < 91)\nwhere j < n[b]\n{PLAIN}", b=3, h=1, i=64, j=90),
        warpgroups=1,
        ping_pong=0,
    ),
    "bias": of_form("bias"),
    "four warpgroups": case(attention(i=256, j=256, d=32), warpgroups=4, keys=48),
    "one warpgroup": case(
        attention(h=1, i=64, j=700, mask="causal"),
        warpgroups=1,
        ping_pong=0,
        blocks_per_sm=2,
        stages=4,
        keys=32,
    ),
    "tickets, one set of rows": case(
        attention(h=4, mask="causal"), tile_scheduler="tickets", head_group=2
    ),
    "one row a head": case(attention(h=8, kv=1, i=1, j=130), warpgroups=1, ping_pong=0),
    "odd heads": case(attention(d=72, j=67, i=67), keys=48),
    "wide heads": case(attention(d=128, h=1, dtype="bfloat16"), keys=80),
    "one tile of keys": case(attention(i=65, j=70), keys=80),
    "values of another width": case(program(PLAIN, b=1, h=2, d=32, e=128)),
}
