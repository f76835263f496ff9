"""The comparison of open kernels of a GPU with fixed ones: what is run, and how it is summed up."""

from __future__ import annotations

import pytest

from experiments.dispatch.device import Case, compared, open_space, summary
from tilewright.measure.records.measurement import Measurement, Result, Status
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.spaces.target import as_target

TARGET = as_target("cuda:sm_90a")
TEXT = "matmul n=64 k=64 dtype=bfloat16"


class Executor:
    """Gives each kernel a time: open ones take twice as long."""

    def __init__(self) -> None:
        self.jobs, self.waiting = [], []

    def submit(self, job, candidates) -> None:
        self.jobs.append(job)
        for candidate in candidates:
            call = candidate.kernel.call
            assert [a.shape for a in call.arrays] == [a.shape for a in job.workload.operands]
            score = 2e-6 if call.open_axis else 1e-6
            measurement = Measurement(candidate.schedule, Status.OK, score)
            self.waiting.append(Result(candidate, measurement))

    def pending(self, job) -> int:
        return len(self.waiting)

    def results(self, timeout, job) -> list[Result]:
        done, self.waiting = self.waiting, []
        return done


def test_open_kernels_are_timed_beside_fixed_ones_of_the_same_rows():
    executor = Executor()
    row = compared(Case("small", TEXT, 16), TARGET, executor)
    assert row["seconds"] == row["seconds_of_fewer"] == {"open": 2e-6, "fixed": 1e-6}
    finals = [job for job in executor.jobs if job.final]
    assert [job.workload.extents["m"] for job in finals] == [16, 12]


def test_templates_without_open_kernels_do_not_take_part():
    space = open_space(family_of(TEXT, "m", as_profile("1-16:1")), 16, TARGET)
    assert {"mma", "thin", "simt"} <= set(space.templates)
    assert "low_bit" not in space.templates


def test_the_summary_has_means_and_worst_ratios():
    rows = [{"seconds": {"open": n, "fixed": 2.0}} for n in (2.0, 8.0)] + [{"refused": "all"}]
    found = summary(rows)
    assert found == {"seconds": {"mean": pytest.approx(2), "worst": 4.0, "cases": 2}}
    assert summary([{}]) == {}
