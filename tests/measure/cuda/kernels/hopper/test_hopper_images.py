"""Hopper's kernels of factors and outputs whose pixels lie together in several images: on the
emulator, and NVRTC."""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np
import pytest

from tests.measure.cuda.emulator.planting import Case
from tests.measure.cuda.kernels.hopper.hopper_problems import small_target
from tests.measure.cuda.kernels.kernel_contract import KernelContract
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Value
from tilewright.spaces.space import Space

SMALL = small_target()
TEXTS = {
    "images": "conv2d n=3 c=40 h=4 w=8 o=72 r=1 s=1 dtype=float16 "
    'epilogue="relu(x + bias[o] + residual[n, o, p, q])"',
    "wide panels": "conv2d n=2 c=32 h=8 w=16 o=40 r=1 s=1 dtype=bfloat16 out=float32 "
    'epilogue="x + residual[n, o, p, q]"',
    "rows of images": '"y[n, p, o] = sum[c](x[n, c, p] * f[o, c]) + b[n, o, p]" '
    "n=3 p=128 o=40 c=72 dtype=bfloat16",
}
REFUSED = {
    TEXTS["images"].replace("w=8", "w=6"): "24 pixels in each image; needs whole 16",
    TEXTS["images"].replace("w=8", "w=7"): "28 pixels in each image; needs whole 16",
    TEXTS["rows of images"].replace("p=128", "p=96"): "96 pixels in each image; needs whole 64",
    TEXTS["images"].replace("float16", "tfloat32 out=float32"): "does not run deep",
}
Wanted = Callable[[Mapping[str, Value]], bool]


def cases(name: str, count: int, wanted: Wanted = lambda values: True) -> list[Case]:
    work = workload(TEXTS[name])
    space = Space(work, SMALL, [Hopper(work, SMALL)])
    found = map(space.schedule, space.sample(np.random.default_rng(3), 400))
    kept = [schedule for schedule in found if wanted(schedule.values)][:count]
    assert len(kept) == count
    return [(work, space.lower(schedule)) for schedule in kept]


WAYS: dict[str, Wanted] = {
    "direct": lambda v: not v["store_buffers"],
    "staged": lambda v: bool(v["store_buffers"]),
    "swapped": lambda v: bool(v["swap_ab"]),
    "shared by a cluster": lambda v: v["cluster"] != "1x1",
}
CASES = {
    f"{name}, {way} {number}": case
    for name in ("images", "wide panels")
    for way, wanted in WAYS.items()
    if (name, way) != ("images", "swapped")  # whose tiles of 64 rows are of two images
    for number, case in enumerate(cases(name, 2, wanted))
}
CASES |= {
    f"rows of images {number}": case for number, case in enumerate(cases("rows of images", 3))
}
BROKEN = {
    "staged": cases("wide panels", 3, lambda v: bool(v["store_buffers"]) and not v["swap_ab"])[2],
    "direct": cases("images", 3, lambda v: not v["store_buffers"] and v["cluster"] == "1x1")[2],
}
# what is broken: kernel, pattern, replacement of its first occurrence
BUGS = {
    "pixels of the first image": ("direct", r"(tma_load_3d\([^;]*, )[^,;]* / 32\)\);", r"\g<1>0);"),
    "pixels are counted on": ("direct", r"(tma_load_3d\([^;]*) % 32\)", r"\1)"),
    "all images are stored where the first is": (
        "staged",
        r"(tma_store_3d\([^;]*, )[^,;]* / 128\)\);",
        r"\g<1>0);",
    ),
    "pixels are stored past their image": ("staged", r"(tma_store_3d\([^;]*) % 128\)", r"\1)"),
}


class TestHopperImages(KernelContract):
    cases, broken, bugs = CASES, BROKEN, BUGS


@pytest.mark.parametrize(("text", "reason"), REFUSED.items())
def test_why_pixels_are_not_brought_as_they_lie(text, reason):
    assert reason in str(Hopper.refuses(workload(text), SMALL))


@pytest.mark.parametrize("name", TEXTS)
def test_kernels_compile(name):
    for _, kernel in cases(name, 2):
        text = device_text(kernel.source.text) + kernel.source.text
        built = compile_cubin(text, "sm_90a", 120, lambda: False)
        assert built.cubin is not None, built.log[:2000]
