"""Nothing right refused, nothing wrong passed: many epilogues, depths and dtypes."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.planted import EPILOGUES, product, right, wrong
from tilewright.measure.drawing.draw import one_draw
from tilewright.scheduler.verification import draw, measure
from tilewright.spaces.numerics.allowance import agrees
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

DEPTHS = (8, 64, 512, 4096, 16384)
DTYPES = ("float32", "bfloat16", "float16", "int8", "float8_e4m3fn")
SILENT = {  # what no output shows: halves below their least, eighths that cannot reach 1000
    ("x * 1e-30", "float16"),
    ("relu(x - 1000)", "float8_e4m3fn"),
}
HIDDEN = {("bfloat16(x) + bias[n]", "sums rounded to bfloat16")}


def check(epilogue: str, k: int, dtype: str, seeds: range) -> None:
    work = product(epilogue, k, dtype)
    for seed in seeds:
        drawn = one_draw(work, seed)
        inputs, (low, high) = drawn.inputs, drawn.allowed()[work.outputs[0].name]
        for result in (right(work, inputs, other) for other in seeds):
            assert agrees(result, low, high).all()
        for mistake, result in wrong(work, inputs):
            seen = not agrees(result, low, high).all()
            assert seen or _excused(epilogue, mistake, k, dtype, result, low, high), mistake


def _excused(epilogue, mistake, k, dtype, result, low, high) -> bool:
    """Rounded twice alike; near a pole or the largest number; where one in hundreds is not cut;
    where the sums of tensor cores lose as much as a term."""
    if "largest" in mistake:
        most = np.argmax(np.where(np.isfinite(result), np.abs(result), -1))
        with np.errstate(invalid="ignore"):
            width = high.flat[most] - low.flat[most]
        return not width < 0.04 * np.abs(result.flat[most])
    cut = epilogue == "min(max(x, 0), 6)" and dtype == "int8" and k >= 4096
    lost = dtype == "float8_e4m3fn" and k >= 16384
    return (epilogue, mistake) in HIDDEN or ((cut or lost) and "term" in mistake)


@pytest.mark.parametrize("epilogue", EPILOGUES)
def test_right_results_pass_and_wrong_ones_do_not(epilogue):
    for k, dtype in ((8, "float32"), (512, "float32"), (100, "bfloat16")):
        check(epilogue, k, dtype, range(2))


@pytest.mark.slow
@pytest.mark.parametrize("dtype", DTYPES)
@pytest.mark.parametrize("k", DEPTHS)
def test_right_results_pass_and_wrong_ones_do_not_of_any_depth_and_dtype(k, dtype):
    for epilogue in EPILOGUES:
        if (epilogue, dtype) not in SILENT:
            check(epilogue, k, dtype, range(2))


@pytest.mark.parametrize(
    "epilogue", ["x * 100", "exp(x)", "sqrt(x)", "1 / x", "bfloat16(x) + bias[n]", "relu(x - 1000)"]
)
def test_real_kernels_pass(epilogue):
    check_kernels(product(epilogue, 96, "float32"), 2)


@pytest.mark.slow
@pytest.mark.parametrize("k", DEPTHS)
@pytest.mark.parametrize("dtype", ["float32", "bfloat16"])
def test_real_kernels_of_any_epilogue_pass(k, dtype):
    for epilogue in EPILOGUES:
        check_kernels(product(epilogue, k, dtype), 1)


def check_kernels(work, count: int) -> None:
    space = space_for(work, detect_target("cpu"))
    for verdict in measure(space, draw(space, count, seed=3)):
        assert verdict.right, (str(work), verdict.error_text)
