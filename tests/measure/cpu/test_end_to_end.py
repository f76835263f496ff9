"""From a workload to measurements: random schedules of real templates, built, checked, timed."""

import numpy as np
import pytest

from tests.measure.cpu.c_kernels import target
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.records.measurement import Candidate, Job
from tilewright.measure.testing.executor import collect
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

CASES = [
    ({"m": 67, "n": 131, "k": 61}, 1),
    ({"m": 64, "n": 96, "k": 80, "a": "col", "b": "col", "epilogue": "gelu(x + bias[n])"}, 1),
    ({"m": 33, "n": 70, "k": 50, "dtype": "bfloat16", "out": "float32"}, 1),
    ({"m": 1, "n": 300, "k": 257, "epilogue": "relu(x) * scale[] + residual[m,n]"}, 1),
    ({"m": 120, "n": 100, "k": 90, "c": "col"}, 2),
]


@pytest.mark.parametrize(("parameters", "threads"), CASES)
def test_random_schedules_are_right(parameters, threads):
    work = workload("matmul", **parameters)
    machine = target(min(threads, target().cores))
    space = space_for(work, machine)
    rows = space.sample(np.random.default_rng(0), 8)
    schedules = [space.schedule(row) for row in rows]
    executor = LocalExecutor(machine)
    job = Job("test", work, machine)
    executor.submit(job, [Candidate(job, s, space.lower(s)) for s in schedules])
    measured = collect(executor)
    executor.close()
    assert len(measured) == len(schedules) >= 6  # of few, some may be dead ends
    assert [m.error_text for m in measured if m.error_kind] == []
    assert all(m.score is not None and m.score > 0 for m in measured)
