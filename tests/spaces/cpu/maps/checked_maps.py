"""Maps on a made-up CPU, their kernels, and whether these are right."""

from __future__ import annotations

import dataclasses
import re

from tests.spaces.cpu.machine import this_cpu
from tilewright.spaces.cpu.maps.template import MapTemplate
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule, Value
from tilewright.spaces.space import Space
from tilewright.spaces.workloads.workload import Workload

NAMED = {
    "a transposition": "y[j, i] = relu(x[i, j] + b[i])",
    "a permutation": "y[i, k, j] = x[i, j, k] * v[k]",
    "bfloat16": "x: bfloat16; y: bfloat16; y[j, i] = 2 * x[i, j]",
    "two outputs": "y[j, i] = 2 * x[i, j]; z[j, i] = y[j, i] + w[j, i]; -> y, z",
    "gathered rows": "t: int32[i](index < 9); y[i, j] = x[t[i], j]",
    "gathered columns": "t: int32[j](index < 9); y[i, j] = x[i, t[j]]",
    "gathered along a diagonal": "t: int32[j](index < 9); y[i, j] = x[t[j], j]",
    "a diagonal": "y[i, j] = select(j <= i, x[i, j], -1) * d[i + j]",
}
EXTENTS = {"i": 67, "j": 130, "k": 19}


def machine(**changes: int) -> CpuTarget:
    caches = {"l1_bytes": 32 << 10, "l2_bytes": 64 << 10, "l3_bytes": 1 << 20}
    return dataclasses.replace(this_cpu(), **{"threads": 1, **caches, **changes})


def named(text: str) -> Workload:
    """The program of a text, with the extents that it uses."""
    text = text.replace("int32[i]", "int32[67]").replace("int32[j]", "int32[130]")
    used = {axis: n for axis, n in EXTENTS.items() if re.search(rf"\b{axis}\b", text)}
    return workload(text, **used)


def space_of(w: Workload, target: CpuTarget) -> Space:
    return Space(w, target, [MapTemplate(w, target)])


def tiled(w: Workload, target: CpuTarget, **changes: Value) -> Kernel:
    """The kernel of a schedule with these decisions."""
    values = {"order": "rows", "prefetch": "ask", "unroll": 1, "workers": 1, **changes}
    return space_of(w, target).lower(Schedule("map", tuple(values.items())))


MOVED = {
    "turned and not": "y[j, i] = x[i, j]; z[j, i] = w[j, i]; -> y, z",
    "a permutation": "y[i, k, j] = x[i, j, k]",
    "gathered": "t: int32[130](index < 9); y[i, j] = x[i, t[j]]",
    "one for all and every third": "y[i, j] = x[i]; z[i, j] = w[i, 3 * j]; -> y, z",
}
TRANSPOSED = "y[j, i] = x[i, j]"


def moving(text: str, dtype: str, **extents: int) -> Workload:
    """The workload of a text that computes nothing, all of whose arrays but tables have a dtype."""
    dtypes = "".join(f"{name}: {dtype}; " for name in "wxyz" if f"{name}[" in text)
    w = workload(dtypes + text, **extents)
    assert MapTemplate.refuses(w, this_cpu()) is None
    return w
