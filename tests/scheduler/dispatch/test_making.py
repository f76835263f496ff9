"""Tables follow what the database knows."""

from __future__ import annotations

import pytest

from tests.scheduler.dispatch.records import PRODUCT, a_schedule, put
from tilewright.measure.records.measurement import new_job_id
from tilewright.measure.records.run import Run
from tilewright.scheduler.dispatch import making
from tilewright.scheduler.dispatch.costs import (
    known_kernels,
    known_torch,
    usual_sizes,
    with_estimates,
)
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.making import dispatch_table, tuned_table
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

TARGET = detect_target("cpu")
PROFILE = "1:.5,2-40:.5"


def asked(database, kernels=2, text=PRODUCT, **options):
    return dispatch_table(text, PROFILE, database, kernels, target=TARGET, **options)


def test_a_record_that_comes_changes_the_table(database):
    put(database, {1: 1e-3, 40: 1e-2}, TARGET)
    before = asked(database)
    assert {each.size for each in before.kernels if each.schedule} <= {1, 40}
    put(database, {16: 1e-5}, TARGET)
    after = asked(database)
    assert 16 in {kernel.size for kernel in after.kernels}
    (found,) = (each for each in after.kernels if each.size == 16)
    assert found.seconds == pytest.approx(1e-5, rel=1e-3)  # and the weights from memory
    assert found.schedule == a_schedule(16, TARGET)
    put(database, {1: 1e-6}, TARGET)
    again = asked(database)
    assert next(each for each in again.kernels if each.size == 1).seconds < 2e-6


def test_estimates_are_scaled_to_the_records_beside_them(database):
    put(database, {8: 5.0}, TARGET)
    table = asked(database, 3)
    estimated = [each.seconds for each in table.kernels if each.schedule is None]
    assert estimated
    assert all(1e-1 < seconds < 1e2 for seconds in estimated)


def test_records_of_others_count_for_nothing(database):
    put(database, {8: 1e-3}, TARGET, "matmul n=25 k=16")
    put(database, {8: 1e-3}, TARGET, "softmax c=24", "r")
    with pytest.raises(InputError, match=r"no kernel of matmul n=24 k=16 is on record up to m=40"):
        asked(database)
    put(database, {64: 1e-3}, TARGET)  # beyond the profile
    with pytest.raises(InputError, match=r"allowed: tune some \(--tune\), or another database"):
        asked(database)


@pytest.mark.parametrize(
    ("change", "says"),
    [
        ({"kernels": 0}, "kernels=0 is out of range; allowed: whole numbers from 1 to 64"),
        ({"kernels": 1.5}, "kernels=1.5 is no whole number"),
        ({"axis": "q"}, "matmul has no parameter 'q'"),
        ({"profile": ""}, "has no sizes"),
        ({"workload": "matmul n=8"}, "matmul needs m, n, k; missing: k"),
        ({"database": "none.db"}, "there is no database at none.db"),
        ({"database": 5}, "5 is no database"),
        ({"target": "tpu"}, "tpu"),
    ],
)
def test_bad_input(change, says, tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    given = {"workload": PRODUCT, "profile": PROFILE, "database": None, "target": TARGET} | change
    with pytest.raises(InputError) as refused:
        dispatch_table(**given)
    assert says in str(refused.value)
    assert len(str(refused.value)) <= 200
    assert not list(tmp_path.iterdir())


def compared(database, size, ours, torch, **more):
    run = Run(
        key=new_job_id(),
        workload=workload(PRODUCT, m=size),
        target=TARGET,
        session="torch",
        command="torch.compile",
        configuration={"ours_seconds": ours},
        library_seconds=torch,
    )
    database.begin_run(run)


def test_torch_gets_the_sizes_at_which_it_was_faster(database):
    put(database, {1: 1e-3, 8: 2e-3, 40: 8e-3}, TARGET)
    assert not any(row.torch for row in asked(database, 3).rows)
    compared(database, 8, 2.0, 1.0)
    compared(database, 16, 1.0, 2.0)
    compared(database, 16, 2.0, 1.0)  # the latest counts
    compared(database, 40, 1.0, 1.5)
    profile = as_profile(PROFILE)
    known = known_torch(family_of(PRODUCT, "m", profile), profile, TARGET, database)
    assert (known.sizes, known.ratios) == ((8, 16, 40), (0.5, 0.5, 1.5))
    table = asked(database, 3)
    by_torch = {n for row in table.rows if row.torch for n in range(row.first, row.last + 1)}
    assert set(range(8, 17)) <= by_torch
    assert not by_torch & {*range(1, 8), 40}
    assert sum(row.torch for row in table.rows) == len(by_torch & {row.first for row in table.rows})


def test_few_searches_are_made_and_only_measured_kernels_remain(database, monkeypatch):
    """A search records a latency by size that no estimate foresees."""
    searched = []

    def search(suite, target, known, seconds, progress):
        sizes = [member.workload.extents["m"] for member in suite.members]
        searched.append((sizes, seconds))
        put(known, {size: 1e-3 * (1 + size % 7) for size in sizes}, target)

    monkeypatch.setattr("tilewright.scheduler.suites.tune.tune_suite", search)
    table = tuned_table(PRODUCT, PROFILE, database, 2, target=TARGET, seconds=8)
    sizes = [size for some, _ in searched for size in some]
    assert len(sizes) == len(set(sizes)) <= 2 + making.FURTHER
    assert all(seconds == pytest.approx(2 * len(some)) for some, seconds in searched)
    assert {each.provenance for each in table.kernels} == {"measured"}
    assert table == asked(database) or len(sizes) == 2 + making.FURTHER


def test_hopes_are_open_kernels_down_to_where_another_template_is_faster(database):
    put(database, {8: 1e-3}, TARGET)
    profile = as_profile(PROFILE)
    family = family_of(PRODUCT, "m", profile)
    known = known_kernels(family, profile, TARGET, database)
    about = (family, profile, TARGET, known, usual_sizes(profile))
    hoped = {each.size: each for each in with_estimates(*about, timed={8})}
    assert hoped == {each.size: each for each in with_estimates(*about)}
    assert [size for size, each in hoped.items() if not each.fewer] == [8]
    for size in (4, 24, 40):
        alike = [other for other in hoped if (other > 16) == (size > 16) and other <= size]
        assert [hoped[size].fewer[other] for other in alike] == [
            pytest.approx(hoped[other].seconds) for other in alike
        ]
    assert hoped[40].fewer[16] == float("inf") > hoped[40].fewer[17]
    table = making._made(making.Request(family, profile, TARGET, 2), database, known, timed={8})
    assert max(each.size for each in table.kernels) == 40
    assert not any(each.opened for each in asked(database).kernels)


def test_regret_beyond_the_largest_record_is_that_of_longer_calls(database):
    """Its latency is no estimate of calls of a hundred times as many rows."""
    put(database, {1: 1e-3, 8: 8e-3}, TARGET)
    profile = as_profile("1:.5,2-800:.5")
    family = family_of(PRODUCT, "m", profile)
    known = known_kernels(family, profile, TARGET, database)
    request = making.Request(family, profile, TARGET, 2)
    table = making._made(request, database, known, of_records=True)
    assert {each.size for each in table.kernels} <= {1, 8}
    assert table.worst < 10


def test_sizes_that_are_worth_a_search():
    assert usual_sizes(as_profile("1:1,5-20:1")) == [1, 2, 3, 4, 5, 6, 8, 12, 16, 20]
