"""Records of earlier versions keep their schedules under today's names of decisions."""

import hashlib
import sqlite3
from pathlib import Path

import pytest

from tests.measure.earlier import make_sqlite
from tilewright.measure.database import Database
from tilewright.measure.records.jsonl import read_lines
from tilewright.spaces.earlier_names import present_name

GOLDEN = Path(__file__).parents[1] / "golden"

SCHEDULES = {
    "hopper": "hopper: swap_ab=True block_m=128 block_n=16 merge=cluster schedule=cooperative "
    "consumers=2 producer_registers=40 blocks_per_sm=1 cluster=1x1 depth=64 store_buffers=0 "
    "stages=4 in_flight=1 splits=2 raster=along_columns raster_group=1",
    "mma": "mma: tile_rows=16 tile_columns=16 warp_rows=1 warp_columns=4 store_path=direct "
    "depth=32 stages=5 blocks_per_sm=2 splits=1 raster=along_columns raster_group=1 merge=store",
    "thin": "thin: multiply=fma lane_columns=16 thread_columns=2 thread_depth=16 in_flight=1 "
    "small_operand=cache load_order=lanes splits=1 warp_columns=2 warp_depth=4 blocks_per_sm=1 "
    "fetch=0 merge=store",
    "rows": "rows: vector=4 lanes=columns row_threads=32 block_rows=4 thread_rows=2 cluster=1 "
    "row_storage=memory convert=once passes=plain prefetch=0 unroll=1 loads=stream stores=cached "
    "blocks_per_sm=6 tile_scheduler=tiles stages=1 row_invariants=again idle_clusters=0",
    "kept": "kept: vector=1 coarsened_axis=a2 coarsening=1 unroll=1 prefetch=1 threads=64 "
    "reduction_threads=1 splits=1 stores=cached",
    "chained_hopper": "chained_hopper: warpgroups=3 blocks_per_sm=1 splits=8 merge=last keys=16 "
    "overlap=0 chain_overlap=0 query_storage=registers tile_scheduler=grid query_buffers=1 "
    "stages=4 ping_pong=0 rescale=always head_group=1 skip_per_warpgroup=1",
    "loops": "loops: threads=256 reduction_threads=8",
}
"""Schedules of the committed records on a GPU, as people read them today."""


@pytest.fixture
def records(tmp_path):
    """The records of a database of schema 0007."""
    make_sqlite(tmp_path / "old.db", "0007")
    with Database(tmp_path / "old.db") as database:
        yield list(database.records())


def test_a_schedule_is_found_under_todays_names(records):
    for record in records:
        if record.target.kind == "cuda" and record.schedule.template in SCHEDULES:
            words = sorted(str(record.schedule).split())
            assert words == sorted(SCHEDULES[record.schedule.template].split())


def test_no_record_keeps_an_earlier_name(records):
    schedules = [record.schedule for record in records]
    pairs = [(schedule.template, name) for schedule in schedules for name in schedule.values]
    assert [name for _, name in pairs] == [present_name(*pair) for pair in pairs]
    names = {name for _, name in pairs}
    assert {"blocks_per_sm_3", "merge_3", "streaming_stores_2"} <= names


def test_each_workload_has_the_best_schedule_that_it_had(records, tmp_path):
    with Database(tmp_path / "old.db") as database:
        for record in records:
            best = database.best(record.workload, record.target)
            assert best is not None
            assert best.measurement.score <= record.measurement.score
        assert database.best(records[0].workload, records[0].target) == records[0]


def test_digests_and_keys_are_those_of_the_new_texts(records, tmp_path):
    with sqlite3.connect(tmp_path / "old.db") as connection:
        query = "SELECT key, schedule, schedule_digest FROM measurements ORDER BY id"
        rows = connection.execute(query).fetchall()
    assert [(record.key, record.schedule.key) for record in records] == [row[:2] for row in rows]
    assert all(hashlib.sha256(text.encode()).hexdigest() == digest for _, text, digest in rows)


def test_an_export_of_format_3_has_the_same_records(records, tmp_path):
    lines = [line for _, line in read_lines(GOLDEN / "names_v3.jsonl", pytest.fail)]
    assert lines == records
    with Database(tmp_path / "old.db") as database:
        assert database.import_jsonl(GOLDEN / "names_v3.jsonl") == 0
        database.export_jsonl(tmp_path / "today.jsonl")
    assert [line for _, line in read_lines(tmp_path / "today.jsonl", pytest.fail)] == records


def test_counts_and_ranks_stay(tmp_path):
    make_sqlite(tmp_path / "old.db", "0007")
    query = (
        "SELECT m.id, m.rank_score, m.score, m.started_at, p.trials, p.failures "
        "FROM measurements m JOIN pairs p ON p.id = m.pair_id ORDER BY m.id"
    )
    with sqlite3.connect(tmp_path / "old.db") as connection:
        before = connection.execute(query).fetchall()
    with Database(tmp_path / "old.db"):
        pass
    with sqlite3.connect(tmp_path / "old.db") as connection:
        assert connection.execute(query).fetchall() == before


@pytest.mark.parametrize("text", ["[]", "{", '{"decisions":{"split":2},"template":"chained"}', 7])
def test_a_row_that_was_malformed_stays_as_it_is(tmp_path, text):
    """A text with a digest of its own, or none of a schedule."""
    make_sqlite(tmp_path / "old.db", "0007")
    with sqlite3.connect(tmp_path / "old.db") as connection:
        connection.execute("UPDATE measurements SET schedule = ? WHERE id = 3", (text,))
    told = []
    with Database(tmp_path / "old.db", report=told.append) as database:
        assert len(list(database.records())) == 16
    assert "1 malformed row" in told[0]
    with sqlite3.connect(tmp_path / "old.db") as connection:
        query = "SELECT schedule FROM measurements WHERE id = 3"
        assert connection.execute(query).fetchall() == [(str(text),)]
