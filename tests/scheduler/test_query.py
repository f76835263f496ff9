"""Queries: each kind of answer, and that the database's word is checked."""

from __future__ import annotations

import warnings
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

from tests.spaces.toy_templates import Blocks
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.measure.testing.made_up import TARGET
from tilewright.scheduler import predictions
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.best import best
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.predictions import PREDICTED, PredictionCache, ranked
from tilewright.scheduler.query import query
from tilewright.spaces.cuda.mma.template import Mma
from tilewright.spaces.cuda.simt.template import Simt
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space


def square(n: int, **parameters):
    return workload("matmul", m=n, n=n, k=n, **parameters)


def some_schedule(*sizes: int, seed: int = 0) -> Schedule:
    """A random schedule that is valid for all these sizes."""
    space, *others = (space_for(square(n), TARGET) for n in sizes)
    rows = space.sample(np.random.default_rng(seed), 512)
    return next(s for s in map(space.schedule, rows) if all(s in other for other in others))


def put(database, n, schedule, score, version=None, target=TARGET, **more):
    version = version or space_for(square(n), TARGET).version_of(schedule)
    measurement = Measurement(schedule, Status.OK, score, started_at=score, **more)
    assert database.record(Record(square(n), target, version, measurement))


def test_measured(database):
    put(database, 64, some_schedule(64, seed=1), 2.0)
    put(database, 64, some_schedule(64, seed=2), 1.0)
    answer = query(square(64), TARGET, database)
    assert (answer.provenance, answer.trials) == (Provenance.MEASURED, 2)
    assert (answer.schedule, answer.latency) == (some_schedule(64, seed=2), 1.0)
    assert answer.gflops == pytest.approx(2 * 64**3 / 1e9)
    assert answer.schedule.decisions == some_schedule(64, seed=2).decisions  # in their order, too


@pytest.mark.parametrize("ask", [query, best])
def test_a_missing_database_is_warned_of(tmp_path, monkeypatch, ask):
    """A service with a wrong path would run untuned kernels, and nobody would know."""
    monkeypatch.chdir(tmp_path)
    with pytest.warns(RuntimeWarning, match=r"^there is no database at no/such\.db$") as caught:
        assert ask(square(16), "cpu", "no/such.db").provenance == "predicted"
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(square(16), "cpu", None).provenance == "predicted"


@pytest.mark.parametrize("ask", [query, best])
def test_what_is_tuned_for_other_threads_is_said(database, ask):
    two = replace(TARGET, threads=2)
    put(database, 64, some_schedule(64), 1.0, target=two)
    put(database, 64, some_schedule(64), 1.0, target=replace(TARGET, threads=2, isa="avx512"))
    told = r"is not measured for the target cpu, but it is for cpu:threads=2: ask for"
    with pytest.warns(RuntimeWarning, match=told) as caught:
        answer = ask(square(64), TARGET, database)
    assert answer.provenance is Provenance.PREDICTED
    assert caught[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert ask(square(64), two, database).provenance is Provenance.MEASURED
        put(database, 64, some_schedule(64), 1.0)
        assert ask(square(64), TARGET, database).provenance is Provenance.MEASURED


def test_an_answer_names_the_targets_of_other_threads(database):
    for threads in (2, 4):
        put(database, 64, some_schedule(64), 1.0, target=replace(TARGET, threads=threads))
    with pytest.warns(RuntimeWarning, match="for cpu:threads=2, cpu:threads=4"):
        answer = query(square(64), TARGET, database)
    assert answer.to_json()["measured_for"] == ["cpu:threads=2", "cpu:threads=4"]


@pytest.mark.parametrize("location", ["sqlite:///missing.db", "empty.db"])
def test_a_database_that_nobody_has_recorded_in_is_warned_of(tmp_path, monkeypatch, location):
    """As the file of a tuner is that begins at this moment."""
    monkeypatch.chdir(tmp_path)
    Path("empty.db").touch()
    with pytest.warns(RuntimeWarning, match=r"no database at missing\.db|empty\.db is empty"):
        assert query(square(16), "cpu", location).provenance == "predicted"


def test_transferred_from_the_nearest_shape(database):
    schedules = {n: some_schedule(n, 256, seed=n) for n in (1024, 128)}
    for n, schedule in schedules.items():
        put(database, n, schedule, 1.0 / n)
    answer = query(square(256), TARGET, database)
    assert (answer.provenance, answer.trials) == (Provenance.TRANSFERRED, 0)
    assert answer.schedule == schedules[128]
    assert answer.record.workload == square(128)
    assert answer.to_json()["transferred_from"] == square(128).to_json()


@pytest.mark.parametrize(
    "sibling",
    [{"cores": 5}, {"compiler_version": "99.1"}, {"model": "another", "l2_bytes": 8 << 20}],
)
def test_transferred_from_a_sibling(database, sibling):
    """As where a process is bound to some cores, or the compiler was updated."""
    there = replace(TARGET, **sibling)
    put(database, 128, some_schedule(128, 64, seed=1), 1.0)
    put(database, 64, some_schedule(64, seed=2), 1.0, target=there)
    answer = query(square(64), TARGET, database)
    assert (answer.provenance, answer.trials) == (Provenance.TRANSFERRED, 0)
    assert answer.schedule == some_schedule(64, seed=2)
    told = answer.to_json()
    assert told["transferred_from"] == square(64).to_json()
    assert told["transferred_from_target"] == there.to_json()
    put(database, 64, some_schedule(64, seed=3), 1.0)
    assert query(square(64), TARGET, database).schedule == some_schedule(64, seed=3)


def test_the_nearest_of_two_siblings_counts(database):
    near, far = (replace(TARGET, cores=TARGET.cores * n) for n in (2, 32))
    put(database, 64, some_schedule(64, seed=1), 1e-3, target=far)
    put(database, 64, some_schedule(64, seed=2), 1.0, target=near)
    assert query(square(64), TARGET, database).schedule == some_schedule(64, seed=2)


@pytest.mark.parametrize("other", [{"threads": 2, "cores": 9}, {"isa": "neon"}])
def test_what_kernels_are_made_of_is_alike_in_siblings(database, other):
    put(database, 64, some_schedule(64, seed=2), 1.0, target=replace(TARGET, **other))
    answer = query(square(64), TARGET, database)
    assert (answer.provenance, answer.record) == (Provenance.PREDICTED, None)
    assert answer.to_json()["transferred_from_target"] is None


def test_gpus_of_an_architecture_are_siblings():
    h100, h200, a100 = (cuda_target(name) for name in ("sm_90a", "sm_90a", "sm_80"))
    h200 = replace(h200, model="another", l2_bytes=2 * h200.l2_bytes)
    assert h100.is_sibling(h200)
    assert not h100.is_sibling(h100)
    assert not h100.is_sibling(a100)
    assert not h100.is_sibling(TARGET)


def test_what_suits_the_nearest_shape_alone_is_not_transferred(database):
    """Taps side by side serve an image of three channels, and never one of many."""

    def image(channels: int):
        return workload(f"conv2d n=1 c={channels} h=40 w=40 o=32 r=3 s=3 layout=NHWC")

    space = space_for(image(3), TARGET)
    rows = space.sample(np.random.default_rng(0), 512)
    taps = [row for row in rows if space.schedule(row).template == "kept"]
    fastest = taps[int(np.argmin(roofline(TARGET).latency(space, np.array(taps))))]
    measurement = Measurement(space.schedule(fastest), Status.OK, 1e-4, started_at=1.0)
    version = space.version_of(measurement.schedule)
    assert database.record(Record(image(3), TARGET, version, measurement))
    expected = {4: Provenance.TRANSFERRED, 80: Provenance.PREDICTED}
    assert {n: query(image(n), TARGET, database).provenance for n in expected} == expected


def test_the_schedule_of_the_nearest_shape_is_repaired_where_it_is_not_valid(database):
    space, other = space_for(square(64), TARGET), space_for(square(128), TARGET)
    rows = other.sample(np.random.default_rng(0), 512)
    foreign = next(s for s in map(other.schedule, rows) if s not in space)
    put(database, 128, foreign, 1.0)
    put(database, 512, some_schedule(512, 64), 1.0)
    answer = query(square(64), TARGET, database)
    assert answer.record.workload == square(128)
    assert answer.schedule in space
    assert answer.schedule["tile_vectors"] == foreign["tile_vectors"]
    assert answer.to_json() == query(square(64), TARGET, database).to_json()


def test_a_larger_shape_is_estimated_to_take_longer(database):
    put(database, 128, some_schedule(128, 96, 160), 1e-3)
    larger, smaller = (query(square(n), TARGET, database) for n in (160, 96))
    assert larger.provenance == smaller.provenance == Provenance.TRANSFERRED
    assert smaller.latency < 1e-3 < larger.latency


def test_predicted_is_the_same_each_time(tmp_path):
    with pytest.warns(RuntimeWarning, match="there is no database at"):
        missing = query(square(64), TARGET, tmp_path / "none.db")
    answers = [query(square(64), TARGET, None), missing]
    assert answers[0].to_json() == answers[1].to_json()
    assert answers[0].provenance is Provenance.PREDICTED
    assert answers[0].schedule in space_for(square(64), TARGET)
    assert list(tmp_path.iterdir()) == []


def test_schedules_are_drawn_once_for_a_workload(database, monkeypatch):
    """A service asks for the same workloads again and again, each time with an open database."""
    put(database, 128, some_schedule(128, 96), 1e-3)
    drawn, sample = [], Space.sample

    def noted(space, generator, count):
        drawn.append(space.workload)
        return sample(space, generator, count)

    monkeypatch.setattr(predictions, "_MEMORY", PredictionCache(8))
    monkeypatch.setattr(Space, "sample", noted)
    wide = {"dtype": "float64"}
    nowhere = [query(square(56, **wide), TARGET, None) for _ in range(2)]
    assert drawn == [square(56, **wide)]
    near = [query(square(96), TARGET, database) for _ in range(2)]
    assert drawn[1:] == [square(96), square(128)]
    for first, second in (nowhere, near):
        assert first.to_json() == second.to_json()
    put(database, 96, some_schedule(96), 1.0)
    assert query(square(96), TARGET, database).provenance is Provenance.MEASURED


def test_what_is_remembered_depends_on_decisions_and_has_a_limit():
    space = space_for(square(72), TARGET)
    some = [template.with_values({"tile_rows": (4,)}) for template in space.templates.values()]
    fewer = Space(space.workload, space.target, some)
    assert len(ranked(space)) == len(ranked(fewer)) == PREDICTED
    assert {schedule.values.get("tile_rows", 4) for schedule, _ in ranked(fewer)} == {4}
    assert ranked(space) == ranked(space_for(square(72), TARGET)) != ranked(fewer)
    memory = PredictionCache(2)
    found = [memory.get(key, lambda key=key: [key]) for key in "abab"]
    assert found[0] is found[2]
    assert memory.get("c", lambda: "new") == "new"
    assert memory.get("b", lambda: "again") == ["b"]
    assert memory.get("a", lambda: "again") == "again"


def test_what_is_not_in_the_space_is_passed_over(database):
    put(database, 64, Schedule("contraction", (("tile_rows", 10**6),)), 1e-9)
    put(database, 64, Schedule("magic", (("source", "rm -rf"),)), 1e-9, version="magic.1")
    put(database, 64, some_schedule(64), 1.0)
    answer = query(square(64), TARGET, database)
    assert (answer.schedule, answer.latency) == (some_schedule(64), 1.0)


def test_a_measurement_of_another_version_is_only_transferred(database):
    put(database, 64, some_schedule(64), 1.0, version="contraction.0")
    answer = query(square(64), TARGET, database)
    assert (answer.provenance, answer.schedule) == (Provenance.TRANSFERRED, some_schedule(64))


def test_what_an_older_version_measured_and_no_space_has_is_passed_over(database):
    space, other = space_for(square(64), TARGET), space_for(square(128), TARGET)
    rows = other.sample(np.random.default_rng(0), 512)
    foreign = next(s for s in map(other.schedule, rows) if s not in space)
    put(database, 64, foreign, 1e-9, version="contraction.0")
    answer = query(square(64), TARGET, database)
    assert (answer.provenance, answer.record) == (Provenance.PREDICTED, None)


def test_only_records_of_the_template_whose_version_rose_are_demoted(database, monkeypatch):
    work, target = square(512, dtype="float16"), cuda_target("sm_80")
    space = space_for(work, target)
    rows = space.sample(np.random.default_rng(0), 64)
    schedule = next(s for s in map(space.schedule, rows) if s.template == Mma.name)
    measured = Measurement(schedule, Status.OK, 1e-5, (1e-5,), clock="device", started_at=1.0)
    database.record(Record(work, target, space.version_of(schedule), measured))
    for template, expected in ((Simt, Provenance.MEASURED), (Mma, Provenance.TRANSFERRED)):
        monkeypatch.setattr(template, "version", template.version + 1)
        assert query(work, target, database).provenance is expected


def test_a_foreign_database_is_refused(tmp_path):
    (tmp_path / "notes.txt").write_text("buy milk" * 99)
    with pytest.raises(InputError, match="cannot be used"):
        query(square(64), TARGET, tmp_path / "notes.txt")


class Silent(Blocks):
    """Says nothing of the work it does, as the interface allows."""

    def quantities(self, columns):
        return {}


def test_templates_without_quantities_have_answers_without_a_latency(database, monkeypatch):
    def silent(workload, target, *_):
        return Space(workload, target, [Silent(workload, target)])

    for module in ("query", "unmeasured"):
        monkeypatch.setattr(f"tilewright.scheduler.{module}.space_for", silent)
    answer = query(square(64), TARGET, None)
    assert answer.provenance is Provenance.PREDICTED
    assert answer.schedule in answer.space
    assert answer.latency is answer.gflops is None
    put(database, 128, answer.schedule, 1.0, version="blocks.3")
    near = query(square(64), TARGET, database)
    assert (near.provenance, near.schedule) == (Provenance.TRANSFERRED, answer.schedule)
    assert near.to_json()["latency_s"] is near.to_json()["gflops"] is None


def test_of_templates_that_tell_the_best_estimate_wins(monkeypatch):
    def both(workload, target, *_):
        others = space_for(workload, target).templates.values()
        return Space(workload, target, [Silent(workload, target), *others])

    monkeypatch.setattr("tilewright.scheduler.query.space_for", both)
    answer = query(square(64), TARGET, None)
    assert answer.schedule.template != "blocks"
    assert answer.latency is not None
