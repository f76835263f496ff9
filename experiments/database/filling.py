"""Millions of measurements that could have been made: shapes, runs, attempts of each.

A thousand attempts of one shape are kept as a tuner keeps them; the database copies them to every
other shape under keys of their own.
"""

from __future__ import annotations

import json
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import count as count_up
from itertools import islice
from pathlib import Path

from sqlalchemy import Engine, inspect, text

from experiments.database.storage import Storage
from tilewright.measure.database import Database
from tilewright.measure.records.jsonl import write_lines
from tilewright.measure.records.measurement import ErrorKind, Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.measure.records.run import Proposal, Run
from tilewright.measure.tables.engine import engines, for_writing
from tilewright.measure.tables.opening import open_engine
from tilewright.measure.tables.schema import measurements
from tilewright.measure.testing.made_up import TARGET
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload

FILLED = "filled"
"""The name of the database."""

ATTEMPTS = 1000
"""Attempts of each shape: of 25 two failed, and the best eight were compared in the end."""


def _place(tried: int) -> int:
    """Return where among the attempts of a search this one ends by its latency."""
    return tried * 7919 % ATTEMPTS


FINALISTS = sorted((n for n in range(ATTEMPTS - 8) if n % 25 >= 2), key=_place)[:8]
SHAPES_AT_A_TIME = 50

KEYS = {
    "sqlite": "lower(hex(randomblob(32)))",
    "postgresql": "encode(sha256((t.id || '-' || p.id)::text::bytea), 'hex')",
}


def shape(number: int) -> Workload:
    """Return one of millions of products, each of its own size."""
    m, n, k = number % 100, number // 100 % 100, number // 10_000
    sizes = {"m": 64 + 16 * m, "n": 64 + 16 * n, "k": 64 + 16 * k}
    return workload("matmul", **sizes, epilogue="relu(x + bias[n])")


def run_key(work: Workload) -> str:
    """Return a key as long as those of tuners are."""
    return work.digest[:16]


def attempts(work: Workload, target: Target = TARGET) -> Iterator[Record]:
    """The attempts of one shape in the order they are made."""
    slow = 20 * target.least_seconds(work)
    for number in range(ATTEMPTS):
        final = number >= ATTEMPTS - len(FINALISTS)
        tried = FINALISTS[number - ATTEMPTS] if final else number
        schedule = Schedule(
            "contraction",
            (("kc", 16 + tried), ("mc", 8 * tried), ("order", "mnk"), ("packed", True)),
        )
        score = slow * (1.0 + _place(tried) / ATTEMPTS)
        made = Measurement(
            schedule,
            Status.OK,
            score,
            samples=tuple(score * (1.0 + i / 100) for i in range(5)),
            reference_samples=(1e-3,) * 5,
            clock="cpu",
            round="final" if final else "search",
            started_at=1.7e9 + number,
            info={"flops": work.flops},
        )
        if number % 25 < 2 and not final:
            wrong = {"status": Status.ERROR, "score": None, "samples": ()}
            made = replace(made, **wrong, error_kind=ErrorKind.COMPILE, error_text="spills")
        proposal = Proposal("evolved", number, mean=0.5, spread=0.1)
        yield Record(work, target, "contraction.1", made, run=run_key(work), proposal=proposal)


@dataclass(frozen=True)
class Prepared:
    """A filled database of so many ``shapes``, which took ``seconds``; an ``export`` of records."""

    shapes: int
    seconds: float
    export: Path
    lines: int


def prepared(place: Storage, count: int, lines: int) -> Prepared:
    """Fill databases with ``count`` measurements and so many ``lines``, unless they are there."""
    mark = place.folder / f"{place.kind}-{count}.json"
    if not mark.exists():
        location = place.clear(FILLED)
        seconds = fill(location, count)
        with Database(location) as database:
            database.vacuum()
        mark.write_text(json.dumps(seconds))
    export = place.folder / f"export-{lines}.jsonl"
    if not export.exists():
        records = (record for number in count_up() for record in attempts(shape(number)))
        write_lines(export, [], islice(records, lines))
    return Prepared(count // ATTEMPTS, json.loads(mark.read_text()), export, lines)


def fill(location: str, count: int) -> float:
    """Make a database of so many measurements at ``location``; the seconds it took."""
    start = time.perf_counter()
    shapes = count // ATTEMPTS
    with Database(location) as database:
        database.record_all(list(attempts(shape(0))))
        now = time.time()
        database.add(
            Run(run_key(work), work, TARGET, session="filled", started_at=now, heartbeat=now)
            for work in map(shape, range(shapes))
        )
    _copy(location)
    return time.perf_counter() - start


@contextmanager
def _indexed_afterwards(engine: Engine) -> Iterator[None]:
    """PostgreSQL builds indexes of a filled table in a fraction of the time."""
    if engine.dialect.name != "postgresql":
        yield
        return
    [unique] = (found["name"] for found in inspect(engine).get_unique_constraints("measurements"))
    with engine.begin() as connection:
        connection.execute(text(f"ALTER TABLE measurements DROP CONSTRAINT {unique}"))
        for index in measurements.indexes:
            index.drop(connection)
    yield
    with engine.begin() as connection:
        connection.execute(text("SET LOCAL maintenance_work_mem = '1GB'"))
        connection.execute(text(f"ALTER TABLE measurements ADD CONSTRAINT {unique} UNIQUE (key)"))
        for index in measurements.indexes:
            index.create(connection)


def _copy(location: str) -> None:
    """Give every shape the attempts of the first one."""
    engine = open_engine(location)
    columns = [c.name for c in measurements.columns if c.name not in ("id", "key", "pair_id")]
    sql = text(
        f"INSERT INTO measurements (key, pair_id, {', '.join(columns)}) "
        f"SELECT {KEYS[engine.dialect.name]}, p.id, {', '.join(f't.{name}' for name in columns)} "
        "FROM pairs p CROSS JOIN measurements t "
        "WHERE t.pair_id = 1 AND p.id BETWEEN :first AND :last ORDER BY p.id, t.id"
    )
    with engine.connect() as connection:
        last = connection.execute(text("SELECT max(id) FROM pairs")).scalar_one()
    with _indexed_afterwards(engine):
        for first in range(2, last + 1, SHAPES_AT_A_TIME):
            with for_writing(engine).begin() as connection:
                if engine.dialect.name == "sqlite":
                    connection.execute(text("PRAGMA cache_size = -1000000"))  # a gigabyte
                end = first + SHAPES_AT_A_TIME - 1
                connection.execute(sql, {"first": first, "last": end})
    with for_writing(engine).begin() as connection:
        same = "(SELECT {0} FROM pairs WHERE id = 1)"
        counts = ", ".join(f"{name} = {same.format(name)}" for name in ("trials", "failures"))
        connection.execute(text(f"UPDATE pairs SET {counts} WHERE id > 1"))
    engines.release(engine)
