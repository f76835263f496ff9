"""The figures of one database, in seconds where nothing else is said."""

from __future__ import annotations

import random
import statistics
import time
from collections.abc import Callable, Iterator
from dataclasses import replace
from itertools import islice
from typing import Any

from experiments.database.filling import FILLED, Prepared, attempts, shape
from experiments.database.storage import Storage
from tilewright.measure.database import Database
from tilewright.measure.records.record import Record
from tilewright.measure.testing.made_up import TARGET

ASKED = 1000
BATCHES = 200
BATCH = 64
NEW_SHAPES = 4000


def figures(place: Storage, made: Prepared) -> dict[str, Any]:
    """Measure the databases at ``place``."""
    found: dict[str, Any] = {"fill": made.seconds}
    with Database(place.location(FILLED)) as database:
        found["stats"] = vars(database.stats())
        shapes = [shape(i) for i in range(made.shapes)]
        known = found["stats"]["workloads"]
        found["best"] = times(lambda work: database.best(work, TARGET), asked(shapes))
        unknown = [shape(known + i) for i in range(20)]
        found["nearest"] = times(lambda work: list(database.nearest(work, TARGET)), unknown)
        found["list"] = times(lambda _: database.summaries(), range(1))
        found["batch"] = times(database.record_all, batches(asked(shapes)))
        new = [next(attempts(shape(known + i))) for i in range(NEW_SHAPES)]
        found["new_shapes"] = times(database.record_all, [new])
    found["import"] = imported(place, made)
    return found


def asked(shapes: list[Any]) -> list[Any]:
    return random.Random(0).choices(shapes, k=ASKED)


def batches(shapes: list[Any]) -> Iterator[list[Record]]:
    """Yield batches as tuners record them: each of one shape, started now."""
    for number, work in zip(range(BATCHES), shapes, strict=False):
        start = time.time() + number
        yield [
            replace(record, measurement=replace(record.measurement, started_at=start + i / BATCH))
            for i, record in enumerate(islice(attempts(work), BATCH))
        ]


def times(ask: Callable[[Any], object], questions: Any) -> dict[str, float]:
    """Median and 99th percentile, and how many there were."""
    taken = []
    for question in questions:
        start = time.perf_counter()
        ask(question)
        taken.append(time.perf_counter() - start)
    taken.sort()
    last = taken[min(len(taken) - 1, int(0.99 * len(taken)))]
    return {"median": statistics.median(taken), "p99": last, "count": len(taken)}


def imported(place: Storage, made: Prepared) -> dict[str, float]:
    """Measure the import of the export."""
    with Database(place.clear("imported")) as database:
        start = time.perf_counter()
        assert database.import_jsonl(made.export) == made.lines
        taken = time.perf_counter() - start
    place.clear("imported")
    size = made.export.stat().st_size
    return {"records": made.lines, "bytes": size, "seconds": taken}
