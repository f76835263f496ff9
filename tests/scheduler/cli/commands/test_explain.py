"""What ``tilewright explain`` says of a model and of a workload."""

from __future__ import annotations

import json

import pytest

from tests.scheduler.cli.command import FUSED, SMALL, TRIALS, ask, one_line, without
from tilewright.measure.database import Database
from tilewright.scheduler.cli.app import run
from tilewright.spaces.operators import workload

ASKED = 'matmul m=96 n=64 k=64 epilogue="relu(x + bias[n])"'


@pytest.fixture
def model(tuned, here, capsys):
    ask(capsys, "train", "--db", str(tuned[0]), "--out", "model.json")
    return "model.json"


def test_a_model_is_explained_over_what_was_measured(tuned, model, capsys):
    db = ("--db", str(tuned[0]))
    found = json.loads(ask(capsys, "explain", model, *db, "--format", "json"))
    assert (found["schedules"], len(found["workloads"])) == (2 * TRIALS, 2)
    moved = [each["mean_absolute_contribution"] for each in found["features"]]
    assert moved == sorted(moved, reverse=True)
    assert sum(each["share"] for each in found["features"]) == pytest.approx(1.0)
    text = ask(capsys, "explain", model, *db, "--workload", ASKED)
    assert f"{TRIALS} measured schedules, of matmul m=96" in text
    assert found["features"][0]["feature"].partition(".")[0] in text


def test_a_model_is_explained_over_random_schedules_and_drawn(model, here, capsys):
    text = ask(capsys, "explain", model, "--plot", "one.svg")
    assert "random schedules on cpu" in text
    assert "of 2 workloads" in text
    assert b"<svg" in (here / "one.svg").read_bytes()


def test_a_workload_is_explained(tuned, capsys):
    db = ("--db", str(tuned[0]))
    found = json.loads(ask(capsys, "explain", *SMALL, *db, "--format", "json"))
    assert found["workload"] == workload("matmul", m=64, n=64, k=64).to_json()
    assert found["ran"] + found["failed"] == TRIALS
    best = json.loads(ask(capsys, "query", *SMALL, *db, "--format", "json"))
    assert found["best"] == {"schedule": best["schedule"], "latency_s": best["latency_s"]}
    for level in found["levels"]:
        assert level["share"] == pytest.approx(level["seconds"] / best["latency_s"])
    assert {rules["template"] for rules in found["rules"]} >= {"contraction"}
    text = ask(capsys, "explain", *FUSED, *db)
    for word in ("schedules ran", "explains", "rules reject", "main memory", "The nearest roof"):
        assert word in text


def test_a_workload_in_a_file_is_explained(tuned, tmp_path, capsys):
    file = tmp_path / "product.tw"
    file.write_text("s[i, j] = sum[k](a[i, k] * b[k, j])\ny[i, j] = relu(s[i, j] + bias[j])\n")
    asked = ("--file", str(file), "i=96", "j=64", "k=64", "--db", str(tuned[0]))
    named = ask(capsys, "explain", *FUSED, "--db", str(tuned[0]))
    assert ask(capsys, "explain", *asked) == named


@pytest.mark.parametrize(
    ("words", "says"),
    [
        (("missing.json",), "cannot read model missing.json"),
        (("notes.txt",), "not a Tilewright model"),
        (("model.json", "--plot", "x.gif"), "'x.gif' is neither .svg nor .png"),
        (("model.json", "--plot", "no/folder/x.svg"), "cannot write plot"),
        (("model.json", "--db", "missing.db"), "no database at missing.db"),
        (("model.json", "--workload", "conv m=1"), "unknown operator 'conv'"),
        (("model.json", "--db", "t.db", "--workload", "matmul m=1 n=2 k=3"), "no schedule of"),
        ((*SMALL, "--plot", "x.svg"), "--plot is for a model, not for 'matmul m=64"),
        ((*SMALL, "--workload", ASKED), "--workload is for a model"),
        (("matmul", "m=1", "n=2", "k=3", "--db", "t.db"), "has no schedule of matmul m=1"),
        ((*SMALL, "--db", "missing.db"), "no database at missing.db"),
        ((), "Missing argument"),
    ],
)
def test_bad_questions(model, here, capsys, words, says):
    Database(here / "t.db").close()
    files = {path.name for path in here.iterdir()}
    assert run(["explain", *words]) == 2
    assert says in one_line(capsys.readouterr().err)
    assert {path.name for path in here.iterdir()} == files


def test_a_plot_without_matplotlib_says_what_to_install(model, here):
    code, out, err = without({"matplotlib"}, "explain", model, "--plot", "x.svg", cwd=here)
    assert (code, out) == (2, "")
    assert one_line(err).endswith("--plot needs matplotlib: pip install 'tilewright[plot]'\n")
    code, out, err = without({"matplotlib"}, "explain", model, cwd=here)
    assert (code, err) == (0, "")
    assert "what it is" in out
