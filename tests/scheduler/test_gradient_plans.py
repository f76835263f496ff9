"""The decision of what a gradient reads: the fastest on record, within the memory."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.gradient_plans import best_gradient_plan, suite_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.gradients import gradient, gradient_plans, saving
from tilewright.spaces.workloads.served import workload_of

NORM, WRT = "layernorm r=16 c=64", "x,weight,bias"
WORDS = (*NORM.split(), "--gradient", WRT, "--saved", "search")
CPU = detect_target("cpu", 1)


def put(database: Database, saved: str, seconds: float) -> None:
    """Record both programs of a plan, each with half of the time."""
    for made in (saving(NORM, saved), gradient(NORM, WRT, saved)):
        space = space_for(workload_of(made), CPU)
        schedule = space.schedule(space.sample(np.random.default_rng(0), 8)[0])
        measurement = Measurement(schedule, Status.OK, seconds / 2, started_at=seconds)
        database.record(Record(space.workload, CPU, space.version_of(schedule), measurement))


def test_the_fastest_on_record_is_best(database: Database) -> None:
    put(database, "rstd", 2.0)
    found = best_gradient_plan(NORM, WRT, CPU, database)
    assert (found.plan.saved, found.seconds, found.is_measured) == (("rstd",), 2.0, True)
    put(database, "", 1.0)
    assert best_gradient_plan(NORM, WRT, CPU, database).plan.saved == ()
    put(database, "mean,rstd", 0.5)
    assert best_gradient_plan(NORM, WRT, CPU, database).plan.saved == ("mean", "rstd")


def test_memory_bounds_what_is_kept(database: Database) -> None:
    for saved, seconds in (("", 3.0), ("rstd", 2.0), ("mean,rstd", 1.0)):
        put(database, saved, seconds)
    x, weight, row = 4 * 16 * 64, 4 * 64, 4 * 16
    for memory, saved in (
        (x + weight + 2 * row, ("mean", "rstd")),
        (x + weight + 2 * row - 1, ("rstd",)),
        (x + weight + row - 1, ()),
    ):
        found = best_gradient_plan(NORM, WRT, CPU, database, memory=memory)
        assert found.plan.saved == saved
        assert found.plan.bytes <= memory
    with pytest.raises(InputError, match=rf"memory=7 is too little; allowed: {x + weight} bytes"):
        best_gradient_plan(NORM, WRT, CPU, database, memory=7)


def test_without_records_it_is_predicted() -> None:
    found = best_gradient_plan("attention b=1 h=2 i=64 j=64 d=16", "q,k,v", CPU, None)
    assert found.plan.saved == ("y", "lse")
    assert not found.is_measured


def test_what_no_template_serves_is_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    def refusing(workload: object, target: object) -> None:
        if "mean" in {output.name for output in workload.outputs}:  # type: ignore[attr-defined]
            raise InputError("no template serves it")

    monkeypatch.setattr("tilewright.scheduler.gradient_plans.space_for", refusing)
    assert best_gradient_plan(NORM, WRT, CPU, None).plan.saved != ("mean", "rstd")
    monkeypatch.setattr(
        "tilewright.scheduler.gradient_plans.workload_of",
        lambda program: workload_of(saving(NORM, "mean")),
    )
    with pytest.raises(InputError, match="no template serves it"):
        best_gradient_plan(NORM, WRT, CPU, None)


def test_little_memory_is_had_by_solving(database: Database) -> None:
    anyway = {"solved": "x", "held": "y,weight,bias"}
    found = best_gradient_plan(NORM, WRT, CPU, database, memory=100, **anyway)
    assert (found.plan.saved, found.plan.solved) == (("rstd", "y"), ("x",))
    assert suite_of([found.plan]).members[1].label == "gradient, of rstd,y without x"


def test_programs_that_are_shared_are_tuned_once() -> None:
    (found,) = gradient_plans("softmax r=4 c=32", "x")
    assert [member.label for member in suite_of([found, found]).members] == [
        "forward, saving y",
        "gradient, of y",
    ]


def test_tune_measures_all_and_query_remembers(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    options = ("--threads", "1", "--db", str(tmp_path / "tuning.db"), "--format", "json")
    assert run(["tune", *WORDS, "--trials", "12", *options]) == 0
    tuned = json.loads(capsys.readouterr().out.splitlines()[-1])
    assert tuned["event"] == "gradient_plans"
    saved = {tuple(each["saved"]): each for each in tuned["plans"]}
    assert {(), ("rstd",), ("mean", "rstd")} <= {*saved}
    assert all(each["measured"] and each["latency_s"] > 0 for each in saved.values())
    assert saved["rstd",]["kept"] == {"x": 4096, "weight": 256, "rstd": 64}
    assert [each["best"] for each in saved.values()].count(True) == 1
    assert run(["query", *WORDS, *options]) == 0
    asked = json.loads(capsys.readouterr().out)
    assert [each["best"] for each in asked["plans"]] == [each["best"] for each in saved.values()]
    assert run(["query", *WORDS, "--memory", "4400", *options[:-2]]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 2
    assert lines[0].split()[:3] == ["saved", "kept", "bytes"]
    assert lines[1].startswith("-  ")
    assert lines[1].endswith("measured  best")


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["query", *WORDS, "--memory", "7"], "memory=7 is too little; allowed: 4352 bytes or more"),
        (["query", *WORDS[:-1], "mean", "--memory", "7"], "--memory 7 is for a search"),
        (["query", *WORDS, "--source"], "--source is of one kernel"),
        (["show", *WORDS], "--saved search is for tune and query"),
        (["verify", *WORDS], "--saved search is for tune and query"),
        (["tune", *NORM.split(), "--saved", "search"], "--saved search is for a gradient"),
        (
            ["tune", "--suite", "bert-base", "--gradient", "x", "--saved", "search"],
            "--gradient is for an operator",
        ),
        (["tune", *WORDS, "--trials", "4", "--memory", "-1"], "--memory"),
        (["query", *WORDS, "--held", "z"], "held 'z' is no array"),
        (["query", *WORDS[:-1], "mean", "--held", "y"], "--held y is for a search"),
        (["show", *NORM.split(), "--solved", "x"], "--solved x is for a gradient"),
        (
            ["show", *WORDS[:-1], "y", "--solved", "x"],
            "x cannot be solved for: mean_sum reads it; allowed: saved stages",
        ),
    ],
)
def test_bad_requests_are_one_line(
    words: list[str], message: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert run([*words, *(["--db", str(tmp_path / "none.db")] if words[0] == "tune" else [])]) == 2
    said = capsys.readouterr()
    assert message in said.err
    assert len([line for line in said.err.splitlines() if "no database" not in line]) == 1
