"""The competition of a kernel with torch, and what the database keeps of it."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle, islice

import pytest
import torch

from tests.databases import empty
from tilewright import detect_target, query, workload
from tilewright.measure.database import Database
from tilewright.scheduler.torch.backend import judging
from tilewright.scheduler.torch.backend.judging import Times

PRODUCT = workload("matmul m=8 n=8 k=8")
TARGET = detect_target("cpu")


def test_no_call_finds_in_the_caches_what_the_other_one_left(monkeypatch) -> None:
    monkeypatch.setattr(judging, "SECONDS", 0.0)
    sets = [[torch.zeros(1)] for _ in range(5)]
    taken: list[int] = []
    place = {id(each[0]): number for number, each in enumerate(sets)}
    call = lambda given: taken.append(place[id(given[0])])  # noqa: E731
    times = judging.in_turns(call, call, sets)
    assert min(times.ours, times.torch) > 0
    timed = taken[4 + 2 :]  # after warming up, and a look at how long a call takes
    assert timed == list(islice(cycle(range(5)), len(timed)))
    assert len(timed) >= 2 * judging.ROUNDS


def test_whole_numbers_are_within_any_limits() -> None:
    (made,) = judging.like([torch.full((3,), 7)])
    assert made.tolist() == [0, 0, 0]


@pytest.mark.parametrize(
    "given",
    [
        torch.randn(1, 24).expand(7, 24),
        torch.arange(5).expand(3, 5),
        torch.randn(9).unfold(0, 4, 1),  # windows that overlap
        torch.randn(6, 8)[1:, 2:7].t(),
        torch.randn(0, 3),
        torch.tensor(2.0),
    ],
)
def test_tensors_are_made_and_copied_as_they_lie_in_memory(given: torch.Tensor) -> None:
    for made in (*judging.like([given]), *judging.copied([given])):
        assert (made.shape, made.stride()) == (given.shape, given.stride())
        assert made.dtype == given.dtype
    assert torch.equal(*judging.copied([given]), given)


@pytest.mark.parametrize(
    ("change", "same"),
    [
        (lambda x: x, True),
        (lambda x: x * (1 + 1e-6), True),
        (lambda x: x * 1.01, False),
        (lambda x: x * float("nan"), False),
    ],
)
def test_results_may_differ_by_rounding_alone(change, same: bool) -> None:
    x = torch.linspace(-3, 5, 40)
    assert judging.close(change(x), x) is same


@pytest.mark.parametrize(("rival", "wins"), [(1.03, True), (1.01, False), (0.5, False)])
def test_a_kernel_must_win_clearly(rival: float, wins: bool) -> None:
    assert Times(1.0, rival).wins is wins


def test_a_comparison_is_of_one_schedule_and_of_operands_that_lie_so(tmp_path) -> None:
    schedule = query(PRODUCT, TARGET, None).schedule
    other = replace(schedule, template="another")
    operands = [torch.empty(8, 8), torch.empty(8, 8)]
    with Database(empty(tmp_path)) as database:
        about = (database, PRODUCT, TARGET)
        assert judging.remembered(*about, schedule, operands) is None
        judging.remember(*about, schedule, operands, Times(1.0, 3.0))
        judging.remember(*about, schedule, operands, Times(1.0, 2.0))
        assert judging.remembered(*about, schedule, operands) == Times(1.0, 2.0)
        assert judging.remembered(*about, other, operands) is None
        assert judging.remembered(*about, schedule, [torch.empty(8, 16)[:, :8]] * 2) is None
        assert query(PRODUCT, TARGET, database).trials == 0  # it is no trial of a schedule
        assert database.summaries() == []
