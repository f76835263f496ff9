"""What the commands answer that ask a database or this machine."""

from __future__ import annotations

import json
import os
import re
import shutil
import sqlite3
import subprocess
from contextlib import closing
from pathlib import Path

import numpy as np
import pytest

from tests.scheduler.cli.command import FUSED, SMALL, TRIALS, ask, one_line
from tilewright.costmodel.dataset import Group
from tilewright.costmodel.model import XGBoostModel
from tilewright.costmodel.roofs.analytic import AnalyticModel
from tilewright.measure.database import Database
from tilewright.scheduler.cli.app import run
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import target_from_json


def test_query_measured(tuned, capsys):
    path, (events, _) = tuned
    answer = json.loads(ask(capsys, "query", *SMALL, "--db", str(path), "--format", "json"))
    assert answer["workload"] == workload("matmul", m=64, n=64, k=64).to_json()
    assert answer["target"] == events[-1]["target"]
    with Database(path, create=False) as database:
        best = database.best(
            workload("matmul", m=64, n=64, k=64), target_from_json(answer["target"])
        )
    assert answer["schedule"] == best.schedule.to_json()
    assert answer["latency_s"] == best.measurement.score
    assert answer["gflops"] == pytest.approx(2 * 64**3 / answer["latency_s"] / 1e9)
    assert (answer["provenance"], answer["trials"]) == ("measured", TRIALS)


def test_query_says_what_is_doubted(tuned, tmp_path, capsys):
    path = tmp_path / "copy.db"
    shutil.copy(tuned[0], path)
    assert "doubted" not in ask(capsys, "query", *SMALL, "--db", str(path))
    with Database(path) as database:
        for record in list(database.records()):
            database.doubt(record)
    assert "doubted" in ask(capsys, "query", *SMALL, "--db", str(path))
    answer = json.loads(ask(capsys, "query", *SMALL, "--db", str(path), "--format", "json"))
    assert answer["doubted"] is True


@pytest.mark.parametrize(
    ("words", "threads", "provenance"),
    [(("m=80", "n=64", "k=64"), "1", "transferred"), (SMALL[1:], "2", "predicted")],
)
def test_query_what_was_not_measured(tuned, capsys, words, threads, provenance):
    if int(threads) > len(os.sched_getaffinity(0)):
        pytest.skip("needs two cores")
    options = ("--threads", threads, "--db", str(tuned[0]), "--format", "json")
    answer = json.loads(ask(capsys, "query", "matmul", *words, *options))
    assert (answer["provenance"], answer["trials"]) == (provenance, 0)
    work = workload("matmul", **dict(word.split("=") for word in words))
    schedule = Schedule.from_json(answer["schedule"])
    assert schedule in space_for(work, target_from_json(answer["target"]))


def test_query_prints_source_alone(tuned, tmp_path, capsys):
    path = str(tuned[0])
    capsys.readouterr()
    assert run(("query", *SMALL, "--db", path, "--source")) == 0
    said = capsys.readouterr()
    assert "measured" in said.err
    (tmp_path / "kernel.c").write_text(said.out)
    command = re.search("// Compile: (.*)", said.out).group(1).split()
    done = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    answer = json.loads(ask(capsys, "query", *SMALL, "--db", path, "--source", "--format", "json"))
    assert answer["source"] == said.out


def test_query_without_a_database_predicts_and_makes_none(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert run(("query", *SMALL, "--db", "no/such.db")) == 0
    said = capsys.readouterr()
    assert "predicted" in said.out
    assert one_line(said.err) == "tilewright: there is no database at no/such.db\n"
    assert list(tmp_path.iterdir()) == []


def test_list(tuned, capsys):
    text = ask(capsys, "list", "--db", str(tuned[0]))
    (line,) = (line for line in text.splitlines() if "m=64" in line)
    assert str(TRIALS) in line.split()
    assert line.split()[-2] in ("us", "ms") or line.split()[-3] in ("us", "ms")
    assert 'epilogue="relu(x + bias[n])"' in text


def test_list_is_json_too(tuned, capsys):
    database = ("--db", str(tuned[0]))
    found = json.loads(ask(capsys, "list", *database, "--format", "json"))
    assert len(found) == 2
    (small,) = (summary for summary in found if "m=64" in summary["workload"])
    answer = json.loads(ask(capsys, "query", *SMALL, *database, "--format", "json"))
    for key in ("target", "latency_s", "gflops", "doubted"):
        assert small[key] == answer[key]
    assert (small["trials"], small["failures"], small["lost"]) == (TRIALS, 0, 0)


def test_export_and_import_round_trip(tuned, tmp_path, capsys):
    files = [str(tmp_path / name) for name in ("out.jsonl", "again.jsonl")]
    other = str(tmp_path / "other.db")
    count = ask(capsys, "export", "--db", str(tuned[0]), files[0]).split()[0]
    assert int(count) >= 2 * TRIALS
    assert f"{count} new records" in ask(capsys, "import", files[0], "--db", other)
    assert "0 new records" in ask(capsys, "import", files[0], "--db", other)
    ask(capsys, "export", "--db", other, files[1])
    first, again = (Path(file).read_bytes().splitlines() for file in files)
    assert sorted(again) == sorted(first)  # the order of the runs says nothing
    question = ("query", *SMALL, "--format", "json", "--db")
    assert ask(capsys, *question, other) == ask(capsys, *question, str(tuned[0]))


def test_import_reports_a_torn_line(tuned, tmp_path, capsys):
    path = tmp_path / "torn.jsonl"
    ask(capsys, "export", "--db", str(tuned[0]), str(path))
    path.write_bytes(path.read_bytes()[:-20])
    assert run(["import", str(path), "--db", str(tmp_path / "new.db")]) == 0
    assert "is torn and was left out" in capsys.readouterr().err


def test_databases_are_merged_measured_and_vacuumed(tuned, tmp_path, capsys):
    path, other, log = str(tuned[0]), str(tmp_path / "other.db"), str(tmp_path / "log.jsonl")
    count = ask(capsys, "export", "--db", path, log).split()[0]
    assert ask(capsys, "db", "merge", path, path, "--into", other).splitlines() == [
        f"{count} new records of {path}",
        f"0 new records of {path}",
    ]
    stats = ask(capsys, "db", "stats", "--db", other)
    assert f"{count}, 0 failed, 0 lost" in stats
    assert re.search(r"^targets +1$", stats, re.MULTILINE)
    assert re.search(r"^pairs +2 of a workload and a target$", stats, re.MULTILINE)
    found = json.loads(ask(capsys, "db", "stats", "--db", other, "--format", "json"))
    assert (found["measurements"], found["pairs"], found["targets"]) == (int(count), 2, 1)
    assert found["bytes"] == Path(other).stat().st_size
    assert "MiB before, " in ask(capsys, "db", "vacuum", "--db", other)
    assert ask(capsys, "list", "--db", other) == ask(capsys, "list", "--db", path)


def test_train_reports_what_it_learned_from_and_evaluate_how_well(tuned, tmp_path, capsys):
    model, db = str(tmp_path / "model.json"), str(tuned[0])
    text = ask(capsys, "train", "--db", db, "--out", model)
    assert f"trained on {2 * TRIALS} schedules of 2 workloads, of which 0 failed\n" in text
    assert "operators: matmul\ndevices: cpu " in text
    assert "left out: the model itself has learned from it, so another ranks it" in text
    assert "Not known to be of use" in text
    report = json.loads(ask(capsys, "train", "--db", db, "--out", model, "--format", "json"))
    assert (report["schedules"], report["operators"]) == (2 * TRIALS, ["matmul"])
    text = ask(capsys, "evaluate", model, "--db", db)
    for word in ("pairwise", "top-1", "left out", "m=64", "m=96", "top-5 is left out: it takes 10"):
        assert word in text
    found = json.loads(ask(capsys, "evaluate", model, "--db", db, "--format", "json"))
    assert found["figures"] == report["quality"]["figures"]
    assert [part["rows"] for part in found["parts"]] == [TRIALS, TRIALS]
    for split, all_of in (("device", "cpu "), ("operator", "matmul")):
        assert run(("evaluate", model, "--db", db, "--split", split)) == 2
        said = one_line(capsys.readouterr().err)
        assert f"a split by {split} needs schedules of two {split}s or more; " in said
        assert f"of '{all_of}" in said


def test_what_is_malformed_in_a_database_is_passed_over_in_one_line(tuned, here, capsys):
    """All of one workload is: who asks for it by name needs no description of it, and of the other
    every answer is as before."""
    ask(capsys, "train", "--db", str(tuned[0]), "--out", "model.json")
    shutil.copy(tuned[0], "spoiled.db")
    with closing(sqlite3.connect("spoiled.db")) as connection:
        spoiled = "UPDATE workloads SET description = '{}', text = '' WHERE key LIKE '%m=96%'"
        assert connection.execute(spoiled).rowcount == 1
        connection.commit()
    database = ("--db", "spoiled.db")
    for words in (
        ("list", *database),
        ("train", "--out", "again.json", *database),
        ("evaluate", "model.json", *database),
        ("export", "x.jsonl", *database),
    ):
        assert run(words) == 0, words
        said = capsys.readouterr()
        assert said.out
        assert re.search(r": \d+ malformed rows? of .* passed over; the first", one_line(said.err))
    for words in (FUSED, SMALL):
        before = ask(capsys, "query", *words, "--db", str(tuned[0]))
        assert run(("query", *words, *database)) == 0
        assert capsys.readouterr() == (before, "")


def model_against_the_estimate(space) -> XGBoostModel:
    """A model that has learned that what is estimated to be fast is slow."""
    rows = space.sample(np.random.default_rng(0), 100)
    model = XGBoostModel()
    model.fit_groups([Group(space, rows, 1e-9 / AnalyticModel().latency(space, rows))])
    return model


def test_a_model_ranks_what_is_predicted_and_leads_a_search(tuned, here, capsys):
    small = workload("matmul", m=64, n=64, k=64), target_from_json(tuned[1][0][0]["target"])
    model = model_against_the_estimate(space_for(*small))
    model.save(Path("model.json"))
    question = ("query", "matmul", "m=80", "n=72", "k=64", "--db", "no.db", "--format", "json")
    plain, ranked = (
        json.loads(ask(capsys, *question, *more)) for more in ((), ("--model", "model.json"))
    )
    assert plain["provenance"] == ranked["provenance"] == "predicted"
    work, target = workload("matmul", m=80, n=72, k=64), target_from_json(plain["target"])
    space = space_for(work, target)
    schedules = [Schedule.from_json(answer["schedule"]) for answer in (plain, ranked)]
    scores, _ = model.predict(space, space.rows(schedules))
    assert scores[1] > scores[0]
    budget = ("--trials", "4", "--seconds", "100", "--format", "json", "--model", "model.json")
    events = ask(capsys, "tune", *question[1:5], *budget, "--db", "new.db").splitlines()
    assert json.loads(events[-1])["trials"] == 4
    for command in ("tune", "query"):
        assert run((command, *SMALL, "--model", "missing.ubj", "--db", "none.db")) == 2
        assert "cannot read model missing.ubj" in one_line(capsys.readouterr().err)
        assert not Path("none.db").exists()


def test_doctor(capsys, monkeypatch):
    monkeypatch.setenv("OPENBLAS_CORETYPE", "Haswell")
    text = ask(capsys, "doctor")
    for word in ("compiler", "isa", "caches", "float32", "GB/s", "numpy's BLAS", "ray", "cache"):
        assert word in text
    (line,) = (line for line in text.splitlines() if "OPENBLAS_CORETYPE" in line)
    assert "warning" in line


def test_doctor_without_a_compiler_says_so(capsys, monkeypatch):
    monkeypatch.setenv("CC", "/nowhere/gcc")
    assert run(["doctor"]) == 2
    said = capsys.readouterr()
    assert "numpy's BLAS" in said.out
    assert "no C compiler found" in one_line(said.err)


def test_doctor_without_a_cache_says_so(here, capsys, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(here / "notes.txt"))
    assert run(["doctor"]) == 2
    said = capsys.readouterr()
    assert "numpy's BLAS" in said.out
    assert "notes.txt" in one_line(said.err)
