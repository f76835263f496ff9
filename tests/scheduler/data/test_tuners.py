"""Exports as files of other tuners: what `replay` reads back is what the database has."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tests.scheduler.report.made_up import hostile, many, of_records, record, tuned
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.data.tuners import FILES, export_kernels, kernels
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.spaces.schedule import Schedule

FORMATS = list(FILES)


def exported(db, out, format, *more) -> int:
    return run(["export", str(out), "--db", str(db), "--format", format, *more])


@pytest.mark.parametrize("format", FORMATS)
def test_what_is_written_is_read_back(tmp_path, capsys, format):
    db, out = tuned(tmp_path), tmp_path / "space.json"
    assert exported(db, out, format) == 0
    with Database(db, create=False) as database:
        [kernel] = kernels(database)
        records = list(database.records())
    searched = {r.schedule: r.measurement for r in records if r.measurement.round == "search"}
    assert f"{len(searched)} schedules of 1 kernel written" in capsys.readouterr().out
    [recording] = read_recordings(out, print)
    assert len(recording.outcomes) == len(searched)
    assert recording.failures == sum(m.score is None for m in searched.values()) > 0
    found = {
        tuple(map(str, s.values.values())): outcome for s, outcome in recording.outcomes.items()
    }
    varied = [name for name, values in kernel.parameters.items() if len(values) > 1]
    for schedule, measurement in searched.items():
        outcome = found[tuple(str(schedule.values[name]) for name in varied)]
        assert outcome.seconds == pytest.approx(measurement.score)
        cost = measurement.build_seconds + measurement.run_seconds
        assert outcome.cost == pytest.approx(cost or None)


@pytest.mark.parametrize("format", FORMATS)
def test_a_folder_gets_a_file_for_each_kernel(tmp_path, capsys, format):
    db, out = many(tmp_path / "many", 3, 12), tmp_path / "spaces"
    assert exported(db, out, format) == 0
    assert len(list(out.iterdir())) == 3
    for path in out.iterdir():
        [recording] = read_recordings(path, print)
        assert len(recording.outcomes) == 12
    capsys.readouterr()
    assert exported(db, tmp_path / "one.json", format) == 2
    assert "holds one kernel, and 3 are selected" in capsys.readouterr().err
    assert exported(db, out, format, "--operator", "matmul") == 2
    assert "no measured schedule that these options select" in capsys.readouterr().err


def test_failures_have_the_names_that_others_know(tmp_path):
    records = [record(n, None, kind=kind) for n, kind in enumerate(ErrorKind)]
    path = of_records(tmp_path / "failed", [*records, record(99, 1e-3)])
    with Database(path) as database:
        [kernel] = kernels(database)
    entries = FILES["kernel-tuner"](kernel)["cache"].values()
    assert {e["time"] for e in entries if type(e["time"]) is str} == {
        "CompilationFailedConfig",
        "InvalidConfig",
        "RuntimeFailedConfig",
    }
    results = FILES["t4"](kernel)["results"]
    kinds = ("timeout", "compile", "runtime", "correctness", "constraints", "correct")
    assert {result["invalidity"] for result in results} == set(kinds)
    assert sum(not result["correctness"] for result in results) == 2


def test_schedules_of_earlier_decisions_and_comparisons_are_left_out(tmp_path):
    earlier = record(1, 1e-3, measured={"schedule": Schedule("contraction", (("mc", 4),))})
    again = replace(record(2, 9.0).measurement, round="final")
    records = [earlier, record(2, 2e-3), replace(record(2, 9.0), measurement=again)]
    with Database(of_records(tmp_path / "two", records)) as database:
        [kernel] = kernels(database)
    [kept] = kernel.measurements
    assert kept.score == 2e-3


@pytest.mark.parametrize("format", FORMATS)
def test_names_of_a_stranger_lead_nowhere_else(tmp_path, format):
    db, out = hostile(tmp_path / "hostile"), tmp_path / "out"
    with Database(db, create=False) as database:
        export_kernels(database, out, format)
    [path] = out.iterdir()
    assert path.name.isascii()
    assert path.name.removesuffix(".json").replace("-", "_").isidentifier()
    assert json.loads(path.read_text())["schema_version"] == "1.0.0"
    assert {each.name for each in tmp_path.iterdir()} == {"hostile", "out"}
