"""Kernels of several launches: random schedules and planted bugs on the emulator, and NVRTC."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.call_bugs import CallContract, Change, by, moved, without
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.staged.template import CudaStaged
from tilewright.spaces.kernel import WORKSPACE, Buffer, Call, Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

TEXTS = {
    "gated": "gated_matmul m=72 n=136 k=72 dtype=bfloat16",
    "gated, few rows": "gated_matmul m=5 n=136 k=72 dtype=float16",
    "gated, odd": "gated_matmul m=33 n=37 k=29",
    "normalised": "rmsnorm_matmul m=40 n=72 k=64 dtype=bfloat16",
    "normalised, wide": "rmsnorm_matmul m=13 n=24 k=31",
    "the largest logit": '"y[i] = argmax[j](sum[k](a[i,k] * b[j,k]))" i=19 j=41 k=8',
    "a projection of attention": '"p[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d])) * v[j,e]); '
    'y[i,f] = sum[e](p[i,e] * w[e,f])" i=32 j=48 d=64 e=64 f=40 dtype=bfloat16',
    "two outputs": '"s[i,j] = sum[k](a[i,k] * b[k,j]); m[i] = max[j](s[i,j] * s[i,j]); '
    'y[i,j] = a[i,j] / (1 + m[i]); -> m, y" i=12 j=10 k=10',
}
TARGETS = ("sm_80", "sm_90a")


@cache
def space_of(name: str, target: str) -> Space:
    work, gpu = workload(TEXTS[name]), detect_target(f"cuda:{target}")
    return Space(work, gpu, [CudaStaged(work, gpu)])


def kernels(name: str, target: str, count: int, seed: int = 1) -> Iterator[Kernel]:
    space = space_of(name, target)
    rows = space.sample(np.random.default_rng(seed), count)
    return (space.lower(space.schedule(row)) for row in rows)


@deferred
def drawn(name: str, target: str, seed: int) -> Case:
    """A random schedule."""
    return space_of(name, target).workload, next(kernels(name, target, 1, seed))


@deferred
def case_of(name: str, target: str, wanted: Callable[[Call], bool] = lambda call: True) -> Case:
    """The first of some schedules whose call is as it is wanted."""
    found = next(k for k in kernels(name, target, 256) if wanted(k.call))
    return space_of(name, target).workload, found


def own_starts(call: Call) -> set[int]:
    """Where kernels that need memory of their own have it."""
    return {b.start for each in call.launches for b in each.buffers if b.name == WORKSPACE}


CASES = {
    f"{name}, {target} {seed}": drawn(name, target, seed)
    for name in TEXTS
    for target in TARGETS
    for seed in range(1, 3)
}
BROKEN = {
    "gated": case_of("gated", "sm_90a", lambda call: not own_starts(call)),
    "shared zeros": case_of("gated", "sm_90a", lambda call: len(own_starts(call)) == 2),
    "normalised": case_of("normalised", "sm_90a"),
    "attention": case_of("a projection of attention", "sm_90a"),
}


def in_another_order(call: Call) -> Call:
    return replace(call, launches=call.launches[::-1])


def mapped(name: str, to: str) -> Callable[[Call], Call]:
    """The tensor maps of the second launch see another array."""

    def with_bug(call: Call) -> Call:
        first, second = call.launches
        specs = tuple(
            replace(s, operand=to) if s.operand == name else s for s in second.tensor_maps
        )
        assert specs != second.tensor_maps
        return replace(call, launches=(first, replace(second, tensor_maps=specs)))

    return with_bug


def instead(name: str) -> Callable[[Buffer], Buffer]:
    return lambda buffer: replace(buffer, inside=name, start=0)


def read_only(buffer: Buffer) -> Buffer:
    return replace(buffer, written=False)


def shorter(buffer: Buffer) -> Buffer:
    return replace(buffer, bytes=buffer.bytes - 16)


BUGS: Mapping[str, tuple[str, Change]] = {
    "launches in another order": ("gated", in_another_order),
    "rows come after their product": ("normalised", in_another_order),
    "the first launch is left out": ("gated", without(0)),
    "the last launch is left out": ("attention", without(-1)),
    "a launch reads where nothing was written": ("gated", moved(1, "C_sum", by(-128))),
    "a launch writes where nobody reads": ("normalised", moved(0, "C_left", by(-128))),
    "an array overlaps a kernel's own memory": ("shared zeros", moved(0, "C_sum", by(-128))),
    "a kernel's sums begin in others' zeros": ("shared zeros", moved(0, WORKSPACE, by(128))),
    "the wrong matrix is handed on": ("gated", moved(1, "up", instead("gate"))),
    "a tensor map sees the wrong matrix": ("gated", mapped("up", "A")),
    "a tensor map sees what was not computed": ("normalised", mapped("C_left", "C")),
    "a launch writes what it only reads": ("gated", moved(0, "C_sum", read_only)),
    "a launch writes past its array": ("gated", moved(0, "C_sum", shorter)),
}


class TestStagedKernels(CallContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["gated", "normalised", "a projection of attention"])
def test_kernels_compile_for_gpus(name, target):
    for kernel in kernels(name, target, 2, seed=5):
        text = device_text(kernel.source.text) + kernel.source.text
        built = compile_cubin(text, target, 120, lambda: False)
        assert built.cubin is not None, built.log[:2000]
