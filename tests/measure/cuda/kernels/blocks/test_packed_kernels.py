"""Kernels of packed factors: random schedules and planted bugs on the emulator, and NVRTC."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import cache

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case, deferred
from tests.measure.cuda.kernels.call_bugs import CallContract, Change, by, moved, without
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.packed.template import CudaPacked
from tilewright.spaces.kernel import Call, Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

TEXTS = {
    "windows": "conv2d n=2 c=32 h=9 w=7 o=24 r=3 s=3 padding=1 dtype=float16 "
    'epilogue="relu(x + bias[o])"',
    "strides": "conv2d n=3 c=64 h=9 w=11 o=40 r=3 s=2 stride=2 dilation=2 padding=1 dtype=bfloat16",
    "a residual": "conv2d n=2 c=32 h=5 w=7 o=40 r=1 s=1 dtype=float16 "
    'epilogue="relu(x + bias[o] + residual[n, o, p, q])"',
    "whole lines": "conv2d n=2 c=32 h=8 w=8 o=72 r=3 s=3 padding=1 dtype=bfloat16 out=float32",
    "few channels": "conv2d n=2 c=3 h=9 w=7 o=24 r=3 s=3 stride=2 dtype=float16",
}
TARGETS = ("sm_80", "sm_90a")


@cache
def space_of(name: str, target: str) -> Space:
    work, gpu = workload(TEXTS[name]), detect_target(f"cuda:{target}")
    return Space(work, gpu, [CudaPacked(work, gpu)])


def kernels(name: str, target: str, count: int, seed: int = 1) -> list[Kernel]:
    space = space_of(name, target)
    rows = space.sample(np.random.default_rng(seed), count)
    return [space.lower(space.schedule(row)) for row in rows]


@deferred
def drawn(name: str, target: str, number: int, count: int = 3, seed: int = 1) -> Case:
    """One of some schedules."""
    return space_of(name, target).workload, kernels(name, target, count, seed)[number]


CASES = {
    f"{name}, {target} {number}": drawn(name, target, number)
    for name in TEXTS
    for target in TARGETS
    for number in range(2)
}


@deferred
def staged(seed: int) -> Case:
    """One whose output leaves by TMA, image by image."""
    space = space_of("whole lines", "sm_90a")
    found = map(space.schedule, space.sample(np.random.default_rng(seed), 256))
    return space.workload, space.lower(next(s for s in found if s.values["store_buffers_3"]))


CASES |= {f"staged {seed}": staged(seed) for seed in range(2)}
BROKEN = {
    "staged": staged(9),
    "windows": drawn("windows", "sm_90a", 0, 1, 7),
}


def product_first(call: Call) -> Call:
    return replace(call, launches=(*call.launches[2:], *call.launches[:2]))


def one_image(call: Call) -> Call:
    """The output's map has but the first."""
    last = call.launches[-1]
    specs = tuple(
        replace(s, dims=(*s.dims[:-1], 1)) if s.operand == "y" else s for s in last.tensor_maps
    )
    assert specs != last.tensor_maps
    return replace(call, launches=(*call.launches[:-1], replace(last, tensor_maps=specs)))


BUGS: Mapping[str, tuple[str, Change]] = {
    "the filter is not packed": ("windows", without(0)),
    "the image is not packed": ("windows", without(1)),
    "the product comes first": ("windows", product_first),
    "rows of the output are those of one image": ("staged", one_image),
    "the product reads the image elsewhere": ("windows", moved(-1, "image_packed", by(-128))),
    "the packed image is where the filter is": ("windows", moved(1, "image_packed", by(-128))),
}


class TestPackedKernels(CallContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", ["windows", "a residual"])
def test_kernels_compile_for_gpus(name, target):
    for kernel in kernels(name, target, 2, seed=5):
        text = device_text(kernel.source.text) + kernel.source.text
        built = compile_cubin(text, target, 120, lambda: False)
        assert built.cubin is not None, built.log[:2000]
