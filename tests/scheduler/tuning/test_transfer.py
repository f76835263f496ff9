"""What a search learns from other shapes, operators and devices measured before."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import spearmanr

from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.measure.testing.made_up import TARGET
from tilewright.scheduler.defaults import default_search, learned_model, only
from tilewright.scheduler.machine import roofline
from tilewright.scheduler.strategies.evolutionary import EvolutionarySearch
from tilewright.scheduler.strategies.second_opinion import SECOND
from tilewright.scheduler.testing.search import ask
from tilewright.scheduler.tuning.transfer import relatives, transfer
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for


def square(n: int):
    return workload("matmul", m=n, n=n, k=n)


def latency(space, rows) -> np.ndarray:
    """Of a machine on which only traffic costs time."""
    quantities = space.quantities(rows)
    return (quantities["register_bytes"] + quantities["near_bytes"]) / quantities["useful_flops"]


def measure(
    database, n: int, count: int, version: str | None = None, target=TARGET, work=None
) -> None:
    work = work or square(n)
    space = space_for(work, target)
    rows = space.sample(np.random.default_rng(n), count)
    records = []
    for row, seconds in zip(rows, latency(space, rows), strict=True):
        measurement = Measurement(space.schedule(row), Status.OK, seconds, started_at=1.0)
        own = version or space.version_of(measurement.schedule)
        records.append(Record(work, target, own, measurement))
    database.record_all(records)


def test_it_ranks_a_new_shape_by_its_relatives(database):
    measure(database, 384, 96)
    measure(database, 640, 96)
    space = space_for(square(512), TARGET)
    known = transfer(space, database)
    rows = space.sample(np.random.default_rng(5), 128)
    score, _ = known.model.predict(space, rows)
    assert spearmanr(score, -latency(space, rows)).statistic > 0.7
    [model] = known.model.members
    assert model.workloads == [square(384), square(640)]
    assert len(known.starters) == 16
    drawn = latency(space, rows)
    assert np.quantile(latency(space, space.rows(known.starters)), 0.5) < np.quantile(drawn, 0.2)


def test_the_best_of_each_relative_come_first(database):
    measure(database, 384, 96)
    measure(database, 640, 96)
    space = space_for(square(512), TARGET)
    best = {
        record.schedule
        for n in (384, 640)
        for record in database.best_few(square(n), TARGET, 1, space.versions)
    }
    assert set(transfer(space, database).starters[:2]) == best


def test_a_search_begins_with_what_was_best_nearby(database):
    measure(database, 384, 96)
    space = space_for(square(512), TARGET)
    known = transfer(space, database)
    first = ask(default_search(space, 0, known), 16)
    drawn = latency(space, space.sample(np.random.default_rng(5), 128))
    assert np.median(latency(space, space.rows(first))) < np.quantile(drawn, 0.2)


def test_a_search_from_nothing_has_its_say_beside_what_was_best_nearby(database):
    measure(database, 384, 96)
    space = space_for(square(512), TARGET)
    search = default_search(space, 0, transfer(space, database))
    batches, told = [], {}
    for _ in range(3):
        batches.append(ask(search, 8))
        seconds = latency(space, space.rows(batches[-1])).tolist()
        told |= dict(zip(batches[-1], seconds, strict=True))
        search.tell([*told.items()][-8:])
    guess = roofline(space.target, only(space))
    before = batches[0] + batches[1]
    model, fastest = learned_model(space), min(before, key=told.__getitem__)
    alone = EvolutionarySearch(space, model, guess, 0, SECOND, avoided=[fastest])
    assert set(before).isdisjoint(batches[2])
    assert {s for s in ask(alone, 8) if s not in before} <= set(batches[2])


def test_nothing_comes_of_records_that_a_run_could_not_confirm(database):
    measure(database, 384, 16)
    all_but_six = list(database.records(square(384), TARGET))[6:]
    for record in all_but_six:
        database.doubt(record)
    known = relatives(space_for(square(512), TARGET), database)
    assert len(known.examples) == len(known.starters) == 6


def test_too_little_is_nothing(database):
    space = space_for(square(512), TARGET)
    assert transfer(space, database) is None
    measure(database, 384, 4)
    measure(database, 512, 96)  # its own results are no other shape's
    measure(database, 640, 96, version="of a space that is no more")
    assert transfer(space, database) is None


LARGER = replace(TARGET, model="Another CPU", cores=8, l2_bytes=2 * TARGET.l2_bytes)
OTHERS = {
    "device": {"target": LARGER},
    "shape": {"work": workload("matmul", m=256, n=1024, k=512)},
    "epilogue": {"work": workload("matmul", m=512, n=512, k=512, epilogue="relu(x + bias[n])")},
}


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_another_device_shape_or_epilogue_teaches_and_begins_the_search(database, other):
    measure(database, 512, 96, **other)
    space = space_for(square(512), TARGET)
    known = transfer(space, database)
    rows = space.sample(np.random.default_rng(5), 128)
    score, _ = known.model.predict(space, rows)
    assert spearmanr(score, -latency(space, rows)).statistic > 0.5
    drawn = latency(space, rows)
    assert np.median(latency(space, space.rows(known.starters))) < np.quantile(drawn, 0.2)


@pytest.mark.parametrize("other", OTHERS.values(), ids=OTHERS.keys())
def test_what_is_near_the_fastest_is_asked_of_others_only_if_these_had_the_same_shape(
    database, other
):
    measure(database, 512, 96, **other)
    space = space_for(square(512), TARGET)
    known = transfer(space, database)
    assert known.same_shape == ("target" in other)
    search, own = default_search(space, 0, known), learned_model(space)
    learning = EvolutionarySearch(space, own, known.model, 0)
    for _ in range(2):
        batch = ask(search, 16)
        told = list(zip(batch, latency(space, space.rows(batch)).tolist(), strict=True))
        search.tell(told)
        learning.tell(told)
    near = [proposed for proposed in search.ask(16) if proposed.origin == "neighbour"]
    learning.ask(1)
    said, _ = own.predict(space, space.rows([proposed.schedule for proposed in near]))
    by_own = np.isclose([proposed.mean for proposed in near], said)
    assert len(near) > 4
    assert by_own.mean() < 0.5 if known.same_shape else by_own.mean() > 0.5


def test_the_best_of_a_long_log_teach_although_they_came_late(database):
    measure(database, 384, 1600)
    known = relatives(space_for(square(512), TARGET), database)
    best = database.best(square(384), TARGET)
    assert best.schedule in {example.schedule for example in known.examples}
    assert len(known.examples) < 1100
