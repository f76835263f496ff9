"""Measurements as tables: what rows and columns hold, and that files give it back."""

from __future__ import annotations

import csv
import json
import sys
from dataclasses import replace

import numpy as np
import pytest

import tilewright
from tests.databases import empty
from tilewright.costmodel.features import feature_matrix
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Place, Status
from tilewright.measure.records.run import Proposal
from tilewright.measure.testing.made_up import (
    TARGET,
    WORKLOAD,
    attempt,
    failed,
    lost,
    measured,
    schedule,
    shape_of,
)
from tilewright.scheduler.data.columns import FEATURE, Column, Kind
from tilewright.scheduler.data.export import export_table
from tilewright.scheduler.data.formats import write_csv
from tilewright.scheduler.data.table import Table
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for

OTHER = shape_of(8)


@pytest.fixture
def database(tmp_path):
    """All kinds of attempts, and texts that files must not take for something else."""
    with Database(empty(tmp_path)) as made:
        odd = replace(
            measured(2, 0.1 + 0.2), place=Place('a,"b" ; =1+1', "x", "gcc | 12"), samples=()
        )
        records = [attempt(m) for m in (measured(1, 1e-3), odd, failed(3), lost(4))]
        records[1] = replace(records[1], proposal=Proposal("random", 5, 0.3, None), doubted=True)
        other = measured(9, 2.5e-4, at=1.7e9)
        words = replace(other.schedule, decisions=(("mc", "wide"), ("new", False)))
        records += [attempt(other, OTHER), attempt(replace(other, schedule=words), OTHER)]
        made.record_all(records)
        yield made


@pytest.fixture
def real(tmp_path):
    """Schedules of today's spaces, of three workloads, with made-up latencies."""
    with Database(empty(tmp_path)) as made:
        for m in (8, 24, 40):
            space = space_for(shape_of(m), TARGET)
            rows = np.unique(space.sample(np.random.default_rng(m), 12), axis=0)
            for i, row in enumerate(rows):
                found = space.schedule(row)
                record = attempt(
                    Measurement(found, Status.OK, 1e-3 * (i + 1), (1e-3 * (i + 1),)), shape_of(m)
                )
                made.record(replace(record, template_version=space.version_of(found)))
        made.record(attempt(measured(1, 1e-4), shape_of(8)))  # of an earlier version
        yield made


def cells(table: Table) -> dict[str, list]:
    found: dict[str, list] = {column.name: [] for column in table.columns}
    for chunk in table.chunks():
        assert list(found) == list(dict.fromkeys([*found, *chunk]))
        for name, values in chunk.items():
            found[name] += values
    return found


def test_a_row_tells_what_its_record_does(database):
    found = cells(Table(database))
    records = {record.key: record for record in database.records()}
    assert sorted(found["key"]) == sorted(records)
    for i, key in enumerate(found["key"]):
        record, row = records[key], {name: values[i] for name, values in found.items()}
        measurement = record.measurement
        assert row["workload"] == str(record.workload)
        assert row["latency_s"] == measurement.score
        assert (row["status"], row["doubted"]) == (measurement.status, record.doubted)
        assert row["error_kind"] == measurement.error_kind
        assert row["samples"] == len(measurement.samples)
        assert row["registers"] == measurement.info.get("registers")
        assert row["workload.m"] == record.workload.extents["m"]
        chosen = {
            name.partition(".")[2]: value
            for name, value in row.items()
            if name.startswith("contraction.") and value is not None
        }
        assert chosen == {
            name: str(v) if name == "mc" else v for name, v in record.schedule.decisions
        }


@pytest.mark.parametrize("value", [True, 1.5, "30", None, 2**63, [30]])
def test_what_a_compiler_said_is_a_whole_number_or_missing(tmp_path, value):
    info = {"registers": value, "spill_bytes": 16}
    with Database(empty(tmp_path)) as made:
        made.record(attempt(replace(measured(1, 1e-3), info=info)))
        found = cells(Table(made))
    assert (found["registers"], found["spill_bytes"]) == ([None], [16])


def test_columns_have_the_types_of_their_values(database):
    kinds = {column.name: column.kind for column in Table(database).columns}
    assert kinds["contraction.mc"] is Kind.TEXT  # whole numbers of one record, words of another
    assert kinds["contraction.order"] is Kind.TEXT
    assert kinds["contraction.packed"] is kinds["contraction.new"] is Kind.FLAG
    assert kinds["workload.m"] is Kind.INTEGER
    kinds = {column.name: column.kind for column in Table(database, WORKLOAD).columns}
    assert kinds["contraction.mc"] is Kind.INTEGER
    assert "contraction.new" not in kinds


def test_csv_gives_back_every_value(database, tmp_path):
    path = tmp_path / "trials.csv"
    assert export_table(database, path, "csv", "tuning.db", features=True)[0] == 6
    table = Table(database, features=True)
    readers = {
        Kind.INTEGER: int,
        Kind.NUMBER: float,
        Kind.TEXT: str,
        Kind.FLAG: {"true": True, "false": False}.get,
    }
    with path.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    read = {
        c.name: [readers[c.kind](row[c.name]) if row[c.name] else None for row in rows]
        for c in table.columns
    }
    assert read == cells(table)


def test_parquet_gives_back_every_value_with_its_unit(database, tmp_path):
    parquet = pytest.importorskip("pyarrow.parquet", reason="needs the extra data")
    path = tmp_path / "trials.parquet"
    assert export_table(database, path, "parquet", "tuning.db", features=True)[0] == 6
    read, table = parquet.read_table(path), Table(database, features=True)
    assert read.to_pydict() == cells(table)
    field = read.schema.field("latency_s")
    assert (str(field.type), field.metadata[b"unit"]) == ("double", b"s")
    types = {name: str(read.schema.field(name).type) for name in ("samples", "doubted", "host")}
    assert types == {"samples": "int64", "doubted": "bool", "host": "string"}


def test_trials_is_a_typed_frame(database):
    pytest.importorskip("pandas", reason="needs the extra data")
    frame = tilewright.trials(database, WORKLOAD)
    expected = cells(Table(database, WORKLOAD))
    assert list(frame.columns) == list(expected)
    for name, values in expected.items():
        read = [
            None if missing else v
            for v, missing in zip(frame[name], frame[name].isna(), strict=True)
        ]
        assert read == values
    assert [str(frame[f"contraction.{name}"].dtype) for name in ("mc", "order", "packed")] == [
        "Int64",
        "string",
        "boolean",
    ]
    assert frame.attrs["columns"]["latency_s"]["unit"] == "s"
    assert len(tilewright.trials(database, OTHER.key, TARGET)) == 2
    with pytest.raises(InputError, match=r"no database at missing\.db"):
        tilewright.trials("missing.db")


def test_a_frame_without_pandas_says_what_to_install(database, monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)  # what blocks an import
    with pytest.raises(InputError, match=r"needs pandas: pip install 'tilewright\[data\]'"):
        tilewright.trials(database)


def test_features_are_those_of_the_cost_model_and_split_by_workload(real):
    table = Table(real, features=True)
    found = cells(table)
    names = [name for name in found if name.startswith(FEATURE)]
    for m in (8, 24, 40):
        space = space_for(shape_of(m), TARGET)
        own = [i for i, key in enumerate(found["workload"]) if key == str(shape_of(m))]
        stale = [i for i in own if found["template_version"][i] == "contraction.1"]
        assert len(stale) == (m == 8)
        assert all(found[name][i] is None for name in names for i in stale)
        fresh = [i for i in own if i not in stale]
        records = {record.key: record for record in real.records(shape_of(m))}
        rows = space.rows([records[found["key"][i]].schedule for i in fresh])
        expected = feature_matrix(space, rows, [name.removeprefix(FEATURE) for name in names])
        values = np.array([[found[name][i] for name in names] for i in fresh], dtype=float)
        np.testing.assert_array_equal(values, expected)
        assert len({found["group"][i] for i in own}) == len({found["split"][i] for i in own}) == 1
        latency = np.array([found["latency_s"][i] for i in own])
        assert [found["score"][i] for i in own] == pytest.approx(list(latency.min() / latency))
    parts = {(found["workload"][i], part) for i, part in enumerate(found["split"])}
    assert sorted(part for _, part in parts) == ["test", "train", "train"]


def test_scores_leave_out_what_says_nothing(database):
    found = cells(Table(database, WORKLOAD, features=True))
    by_status = dict(zip(found["status"], found["score"], strict=True))
    assert (by_status["error"], by_status["lost"]) == (0.0, None)
    assert sorted(s for s in found["score"] if s is not None) == [0.0, 1.0]  # the doubted has none
    assert set(found["split"]) == {"train"}


def test_a_card_says_what_every_column_is(database, tmp_path):
    path = tmp_path / "trials.csv"
    _, card = export_table(database, path, "csv", "team|db", features=True)
    text = card.read_text()
    assert card.name == "trials.csv.md"
    plain = text.replace("\\", "")
    for column in Table(database, features=True).columns:
        assert f"| {column.name} | {column.kind} | {column.unit} | {column.meaning} |" in plain
    assert "6 attempts to run schedules of 2 workloads on 1 targets" in text
    assert "team\\|db" in text
    assert "| random | 1 |" in text
    assert "gcc \\| 12" in text
    assert "to be named by whoever publishes this file" in text
    assert f"- tilewright {tilewright.__version__}" in text


def test_an_empty_database_is_a_header(tmp_path):
    with Database(empty(tmp_path)) as nothing:
        count, card = export_table(nothing, tmp_path / "x.csv", "csv", "x.db", features=True)
    assert count == 0
    assert len((tmp_path / "x.csv").read_text().splitlines()) == 1
    assert "(not known)" in card.read_text()


def test_what_is_recorded_meanwhile_waits_for_the_next_export(database):
    table = Table(database)
    before = cells(table)
    database.record(attempt(replace(measured(7, 1.0), schedule=schedule(77))))
    assert json.dumps(cells(table)) == json.dumps(before)


@pytest.mark.parametrize("begin", ["=", "+", "-", "@", "\t", "\r"])
def test_a_text_of_csv_is_no_formula(tmp_path, begin):
    """Numbers stay numbers, whatever their sign."""
    text = f'{begin}HYPERLINK("http://x","y")'
    columns = [
        Column("place.host", Kind.TEXT, "", ""),
        Column("drift", Kind.NUMBER, "", ""),
    ]
    path = tmp_path / "trials.csv"
    write_csv(path, columns, [{"place.host": [text, "a=b"], "drift": [-1.5, 2.0]}])
    with path.open(newline="", encoding="utf-8") as file:
        header, *rows = csv.reader(file)
    assert header == ["place.host", "drift"]
    assert rows == [[f"'{text}", "-1.5"], ["a=b", "2.0"]]
