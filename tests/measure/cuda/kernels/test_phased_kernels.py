"""Kernels of the phases of transposed convolutions: random schedules and planted bugs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache

import numpy as np
import pytest

from tests.measure.cuda.kernels.call_bugs import CallContract, Change, by, moved, without
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.staged.template import CudaPhased
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

TEXTS = {
    "taps that differ": "conv2d_transposed n=1 c=5 h=6 w=5 o=9 r=3 s=3 stride=2 padding=1 "
    "output_padding=1",
    "tensor cores": "conv2d_transposed n=2 c=16 h=6 w=5 o=24 r=4 s=4 stride=2 padding=1 "
    'layout=NHWC dtype=bfloat16 epilogue="relu(x + bias[o])"',
    "elements without taps": "conv2d_transposed n=1 c=4 h=5 w=4 o=6 r=2 s=1 stride=2 dilation=2 "
    "dtype=float16",
}
TARGETS = ("sm_80", "sm_90a")


@cache
def space_of(name: str, target: str) -> Space:
    work, gpu = workload(TEXTS[name]), detect_target(f"cuda:{target}")
    return Space(work, gpu, [CudaPhased(work, gpu)])


def kernels(name: str, target: str, count: int, seed: int = 1) -> Iterator[Kernel]:
    space = space_of(name, target)
    rows = space.sample(np.random.default_rng(seed), count)
    return (space.lower(space.schedule(row)) for row in rows)


CASES = {
    f"{name}, {target}": (space_of(name, target).workload, next(kernels(name, target, 1)))
    for name in TEXTS
    for target in TARGETS
}
BROKEN = {
    name: (space_of(name, "sm_80").workload, next(kernels(name, "sm_80", 1, seed=2)))
    for name in ("taps that differ", "tensor cores")
}
BUGS: Mapping[str, tuple[str, Change]] = {
    "a phase is left out": ("taps that differ", without(1)),
    "a phase writes another's elements": ("taps that differ", moved(1, "y", by(-4))),
    "a phase begins a pixel late": ("tensor cores", moved(0, "y", by(48))),
}


class TestPhasedKernels(CallContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


@pytest.mark.parametrize("target", TARGETS)
@pytest.mark.parametrize("name", TEXTS)
def test_kernels_compile_for_gpus(name, target):
    (kernel,) = kernels(name, target, 1, seed=5)
    text = device_text(kernel.source.text) + kernel.source.text
    built = compile_cubin(text, target, 120, lambda: False)
    assert built.cubin is not None, built.log[:2000]
