"""The SIMT template: its space, its sizes, what it refuses."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cuda.block_templates import BlockTemplateContract
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.cuda.simt.code import SimtCode
from tilewright.spaces.cuda.simt.rules import SimtSizes
from tilewright.spaces.cuda.simt.template import Simt
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload
from tilewright.spaces.space import Space

ALONE = {"splits": 1, "raster": "along_columns", "raster_group": 8, "merge": "store"}


class TestSimt(BlockTemplateContract):
    template, code, sizes = Simt, SimtCode, SimtSizes
    dtypes = ("float32", "float64", "float16", "int8")

    def known_good(self):
        tile = {"thread_rows": 8, "thread_columns": 8, "lane_rows": 4}
        block = {
            "warp_rows": 4,
            "warp_columns": 2,
            "depth": 8,
            "copy_spread": 8,
            "blocks_per_sm": 2,
        }
        return [("float32", {**tile, **block, **ALONE})]


@pytest.mark.parametrize(
    ("parameters", "target", "words"),
    [
        ({}, "cpu", "CUDA"),
        ({"dtype": "float8_e5m2"}, "sm_80", "sm_80 does not convert"),
        ({"dtype": "float64", "epilogue": "gelu(x)"}, "sm_80", "calls gelu"),
    ],
)
def test_what_it_cannot_do_is_refused_in_words(parameters, target, words):
    work = workload("matmul", m=8, n=8, k=8, **parameters)
    hardware = detect_cpu() if target == "cpu" else cuda_target(target)
    assert words in (Simt.refuses(work, hardware) or "")


def test_float64_takes_arithmetic_and_float8_new_hardware():
    arithmetic = workload("matmul", m=8, n=8, k=8, dtype="float64", epilogue="x * 2 + bias[n]")
    assert Simt.refuses(arithmetic, cuda_target("sm_80")) is None
    small = workload("matmul", m=8, n=8, k=8, dtype="float8_e5m2")
    assert Simt.refuses(small, cuda_target("sm_89")) is None


def test_long_sums_are_split_so_that_no_accumulator_has_all_terms():
    work = workload("matmul", m=8, n=8, k=10**5)
    target = cuda_target("sm_90a")
    space = Space(work, target, [Simt(work, target)])
    drawn = space.sample(np.random.default_rng(0), 40)
    splits = {space.schedule(row).values["splits"] for row in drawn}
    assert min(splits) * 8192 >= 10**5
    longer = workload("matmul", m=8, n=8, k=2 * 10**6)
    assert "adds up at most" in str(Simt.refuses(longer, target))
