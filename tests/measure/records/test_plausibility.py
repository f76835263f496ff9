from dataclasses import replace

import pytest

from tilewright.measure.records.measurement import Status
from tilewright.measure.records.plausibility import why_implausible
from tilewright.measure.testing.made_up import (
    TARGET,
    attempt,
    failed,
    lost,
    measured,
)
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.operators import workload

HALF = workload("matmul", m=4096, n=4096, k=4096, dtype="float16")
ROW = workload("matmul", m=1, n=4096, k=14336, dtype="bfloat16")
FIVE = (3e-4, 1e-4, 5e-4, 2e-4, 4e-4)


def on_device(score: float):
    return replace(measured(1, score), clock="device", samples=(score, score * 1.5, score * 0.9))


@pytest.mark.parametrize(
    "record",
    [
        attempt(measured(1, 1e-4)),
        attempt(replace(measured(1, 2e-4), status=Status.SLOW, samples=(2e-4,))),
        attempt(replace(measured(1, 2e-4), samples=FIVE)),  # between other work
        attempt(failed(1)),
        attempt(lost(1)),
        attempt(on_device(230e-6), HALF, cuda_target("sm_90a")),  # 600 of nominally 990 TFLOP/s
        attempt(on_device(30e-6), ROW, cuda_target("sm_90a")),  # 4 of nominally 4.8 TB/s
        attempt(measured(1, 5.0e-7), workload("matmul", m=24, n=24, k=24)),  # 55 GFLOP/s a core
    ],
)
def test_what_runners_write_is_plausible(record):
    assert why_implausible(record) is None


@pytest.mark.parametrize(
    ("record", "says"),
    [
        (attempt(replace(measured(1, 1e-4), samples=())), "without samples"),
        (attempt(replace(measured(1, 1e-4), score=5e-5)), "not the statistic"),
        (attempt(replace(measured(1, 1e-4), clock="device")), "not the statistic"),
        (attempt(replace(measured(1, 3e-4), samples=FIVE)), "not the statistic"),
        (attempt(replace(measured(1, 2e-4), clock="device", samples=FIVE)), "not the statistic"),
        (attempt(replace(measured(1, 1e-4), status=Status.SLOW, score=None)), "not the statistic"),
        (attempt(replace(failed(1), score=1e-4)), "failures that have a score"),
        (attempt(measured(1, 1e-12)), "hardware cannot reach"),
        (attempt(replace(measured(1, 1e-12), status=Status.SLOW)), "hardware cannot reach"),
        (attempt(measured(1, 2e-7), workload("matmul", m=64, n=64, k=64)), "cannot reach"),
        (attempt(measured(1, 1e-10), workload("matmul", m=1, n=1, k=4096)), "cannot reach"),
        (attempt(on_device(30e-6), HALF, cuda_target("sm_90a")), "cannot reach"),
        (attempt(on_device(1e-6), ROW, cuda_target("sm_90a")), "cannot reach"),
    ],
)
def test_what_cannot_be_true(record, says):
    assert says in str(why_implausible(record))


def test_more_threads_and_wider_vectors_reach_more():
    one = TARGET.least_seconds(HALF)
    assert replace(TARGET, threads=4).least_seconds(HALF) == pytest.approx(one / 4)
    assert replace(TARGET, vector_bytes=64).least_seconds(HALF) == pytest.approx(one / 2)
