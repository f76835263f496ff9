"""What a search of a new shape learns from those measured before."""

from __future__ import annotations

import numpy as np
from scipy.stats import spearmanr

from measure.measurement import Measurement, Status
from measure.record import Record
from scheduler.defaults import default_search
from scheduler.transfer import neighbours, transfer
from spaces.operators import workload
from spaces.registry import space_for
from tests.contracts.made_up import TARGET
from tests.contracts.search import ask


def square(n: int):
    return workload("matmul", m=n, n=n, k=n)


def latency(space, rows) -> np.ndarray:
    """Of a machine on which only traffic costs time."""
    quantities = space.quantities(rows)
    return (quantities["register_bytes"] + quantities["near_bytes"]) / quantities["useful_flops"]


def measure(database, n: int, count: int, version: str | None = None) -> None:
    space = space_for(square(n), TARGET)
    rows = space.sample(np.random.default_rng(n), count)
    records = []
    for row, seconds in zip(rows, latency(space, rows), strict=True):
        measurement = Measurement(space.schedule(row), Status.OK, seconds, started_at=1.0)
        own = version or space.version_of(measurement.schedule)
        records.append(Record(square(n), TARGET, own, measurement))
    database.record_all(records)


def test_it_ranks_a_new_shape_by_its_neighbours(database):
    measure(database, 384, 96)
    measure(database, 640, 96)
    space = space_for(square(512), TARGET)
    known = transfer(space, database)
    rows = space.sample(np.random.default_rng(5), 128)
    score, _ = known.model.predict(space, rows)
    assert spearmanr(score, -latency(space, rows)).statistic > 0.7
    assert {key for key, _ in known.model.trained_on} == {square(384).key, square(640).key}
    assert len(known.starters) == 16
    drawn = latency(space, rows)
    assert np.quantile(latency(space, space.rows(known.starters)), 0.5) < np.quantile(drawn, 0.2)


def test_a_search_begins_with_what_was_best_nearby(database):
    measure(database, 384, 96)
    space = space_for(square(512), TARGET)
    known = transfer(space, database)
    first = ask(default_search(space, 0, known), 16)
    drawn = latency(space, space.sample(np.random.default_rng(5), 128))
    assert np.median(latency(space, space.rows(first))) < np.quantile(drawn, 0.2)


def test_nothing_comes_of_records_that_a_run_could_not_confirm(database):
    measure(database, 384, 16)
    all_but_six = list(database.records(square(384), TARGET))[6:]
    for record in all_but_six:
        database.doubt(record)
    known = neighbours(space_for(square(512), TARGET), database)
    assert len(known.examples) == len(known.starters) == 6


def test_too_little_is_nothing(database):
    space = space_for(square(512), TARGET)
    assert transfer(space, database) is None
    measure(database, 384, 4)
    measure(database, 512, 96)  # its own results are no other shape's
    measure(database, 640, 96, version="of a space that is no more")
    assert transfer(space, database) is None
