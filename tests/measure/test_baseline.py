"""NumPy's own product, measured apart."""

from __future__ import annotations

import json
import subprocess
import sys

import numpy as np
import pytest

from tilewright.measure import baseline
from tilewright.measure.baseline import (
    environment,
    expected_seconds,
    least_seconds,
    matrices,
    numpy_seconds,
)
from tilewright.spaces.operators import workload

LOOK = """
import json, numpy, threadpoolctl
print(json.dumps([p for p in threadpoolctl.threadpool_info() if p["user_api"] == "blas"]))
"""


def blas(**variables):
    done = subprocess.run(
        [sys.executable, "-c", LOOK], env=variables, capture_output=True, text=True, check=True
    )
    return json.loads(done.stdout)


def test_the_blas_is_at_its_best_and_uses_the_threads_asked_for(monkeypatch):
    own = blas(**environment(1))
    if not own or own[0]["internal_api"] != "openblas":
        pytest.skip("NumPy's BLAS is not OpenBLAS")
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Prescott")
    monkeypatch.setenv("OPENBLAS_NUM_THREADS", "7")
    (found,) = blas(**environment(1))
    assert found["architecture"] == own[0]["architecture"]
    assert found["num_threads"] == 1


@pytest.mark.parametrize("order", ["row", "col"])
def test_latency_grows_with_the_work(order):
    small, large = (
        numpy_seconds(workload("matmul", m=n, n=n, k=n, a=order, epilogue="relu(x)"), 1)
        for n in (64, 512)
    )
    assert 0 < small < large


@pytest.mark.parametrize("numbers", [{"batch": 3}, {"batch": 2, "heads": 3}, {"heads": 3}])
def test_a_batch_is_what_numpy_multiplies(numbers):
    batch = workload("matmul", m=5, n=4, k=6, dtype="float64", a="col", **numbers)
    expected = batch.matmul.contract(batch.make_inputs(0))
    np.testing.assert_allclose(np.matmul(*matrices(batch)), expected, rtol=1e-12)


def test_a_clock_that_stands_still_over_many_calls_tells_their_latency(monkeypatch):
    monkeypatch.setattr(baseline, "SECONDS", 0.02)
    microseconds = 0

    def call():
        nonlocal microseconds
        microseconds += 3

    seconds = least_seconds(call, lambda: 1e-6 * (microseconds // 40 * 40))
    assert 2e-6 < seconds <= 3.2e-6


def test_what_numpy_has_no_fast_product_for():
    assert numpy_seconds(workload("matmul", m=8, n=8, k=8, dtype="bfloat16"), 1) is None
    assert numpy_seconds(workload("matmul", m=8, n=8, k=8, dtype="int8"), 1) is None


def test_what_takes_too_long_is_given_up():
    work = workload("matmul", m=512, n=512, k=512)
    assert numpy_seconds(work, 1, limit=0.01) is None


def test_large_products_are_expected_to_take_long():
    small = expected_seconds(workload("matmul", m=512, n=512, k=512), 50.0)
    assert 0.9 < small < 1.2
    assert 40 < expected_seconds(workload("matmul", m=8192, n=8192, k=8192), 50.0) < 60
    assert 3 < expected_seconds(workload("matmul", m=16384, n=16384, k=1), None) < 10
