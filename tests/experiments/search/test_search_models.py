"""Ranking and warm starts on recorded spaces, as they are measured."""

from __future__ import annotations

import gzip
import json
from argparse import ArgumentTypeError

import numpy as np
import pytest

from experiments.search import cost, paired, predicted, ranking, variants, warm
from experiments.search.results import estimate, write
from tests.scheduler.replay.toys import hilly
from tilewright.scheduler.replay.formats.foreign import ForeignTarget
from tilewright.scheduler.replay.recording import recording
from tilewright.scheduler.tuning.transfer import LEADERS
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.template import Template


def on(device: str):
    """The toy on another device of the same speeds."""
    toy = hilly()
    template: Template = toy.space.templates["recorded"]
    template.target = ForeignTarget(device)
    return recording(device, [template], toy.outcomes)


def test_a_model_of_some_schedules_ranks_the_others():
    found = ranking.qualities(hilly(), rows=64, draws=2)
    assert found.shape == (2, 3)
    assert (found[:, 0] > 0.6).all()
    assert ((found >= 0) & (found <= 1)).all()
    assert set(ranking.summary(found)) == {"pairwise", "top1", "recall1"}


def test_what_a_model_predicts_stands_beside_what_was_measured():
    found = predicted.predicted(hilly(), rows=64, points=100)
    score, spread, measured = (np.array(found[name]) for name in ("score", "spread", "measured"))
    assert len(score) == len(spread) == len(measured) == 100
    assert np.corrcoef(score, measured)[0, 1] > 0.5
    assert (measured == 0).any()  # those that failed
    assert (spread > 0).all()


def test_the_search_is_timed_on_outcomes_that_stay_what_they_are():
    space = space_for(workload(cost.WORKLOAD), detect_target("cpu", 1))
    rows = space.sample(np.random.default_rng(0), 8)
    told = cost.outcomes(space, rows)
    assert told == cost.outcomes(space, rows)
    assert all(latency > 0 for _, latency in told)
    assert cost.searched(space, rows=16, trials=8, batch=4) > 0


def test_what_a_sibling_knows_begins_the_search(monkeypatch):
    monkeypatch.setattr(warm, "TRIALS", (8, 16))
    here, there = on("here"), on("there")
    assert warm.is_sibling(there, here)
    assert not warm.is_sibling(here, here)
    known = warm.transferred(here, [there], 200, seed=0)
    assert len(known.starters) == LEADERS
    assert [sum(member.trained_on.values()) for member in known.model.members] == [200]
    cold, warmed = warm.pair(here, [there], 200, seed=0)
    assert warmed[0] >= cold[0]
    assert warmed[0] > 0.9
    assert cold[1] >= cold[0]


def test_results_say_when_and_how_they_were_made(tmp_path):
    write(
        tmp_path / "x.json",
        "experiments.search.ranking",
        {"figure": estimate(np.array([1.0, 2.0, 3.0]))},
    )
    told = json.loads((tmp_path / "x.json").read_text())
    assert told["figure"]["mean"] == 2.0
    assert told["figure"]["low"] < 2.0 < told["figure"]["high"]
    assert told["command"].startswith("python -m ")
    assert len(told["date"]) == 10


def test_one_repeat_has_no_interval():
    assert estimate(np.ones(1)) == {"mean": 1.0, "low": None, "high": None}


def test_two_replays_are_compared_seed_by_seed(tmp_path):
    line = {"space": "x", "optimum_seconds": 1.0, "gains": [[[1, 4.0], [20, 1.0]], [[3, 2.0]]]}
    faster = line | {"gains": [[[1, 2.0]], [[1, 2.0], [200, 1.0]]]}
    files = [tmp_path / "before.jsonl", tmp_path / "after.jsonl.gz"]
    files[0].write_text(json.dumps(line) + "\n" + json.dumps({"space": None}) + "\n")
    files[1].write_bytes(gzip.compress(json.dumps(faster).encode()))
    before, after = (paired.fractions(path)["x"] for path in files)
    assert before.tolist() == [[0.25, 1.0, 1.0, 1.0], [0.5, 0.5, 0.5, 0.5]]
    assert after.tolist() == [[0.5, 0.5, 0.5, 0.5], [0.5, 0.5, 0.5, 1.0]]
    found = paired.compared(before, after)
    assert found["16"] | {"low": 0, "high": 0} == {
        "before": 0.375,
        "after": 0.5,
        "gain": 0.125,
        "low": 0,
        "high": 0,
    }
    assert found["256"]["gain"] == 0.0


def test_variants_are_replayed_with_the_same_seeds_and_compared(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(variants, "read_recordings", lambda file, report: [on(file.name)])
    out = tmp_path / "variants.jsonl"
    words = ["here", "there", "--trials", "24", "--repeats", "2", "--batch", "8", "--jobs", "1"]
    words += ["--variant", "today", "--variant", "same:optimism=0.4,members=5"]
    words += ["--variant", "warm:warm=200", "--out", str(out)]
    monkeypatch.setattr("sys.argv", ["variants", *words])
    variants.main()
    lines = [json.loads(line) for line in out.read_text().splitlines()]
    assert [line["space"] for line in lines] == ["here", "there"] * 3
    today, same, warmed = lines[0], lines[2], lines[4]
    assert (same["search"], same["settings"]) == ("same", {"optimism": 0.4, "members": 5.0})
    assert same["gains"] == today["gains"] != warmed["gains"]
    printed = capsys.readouterr().out.splitlines()
    assert [line.split()[0] for line in printed] == ["today", "same", "warm"]
    assert "16: 1.0 (" in printed[2]


def test_unknown_settings_of_variants_are_refused():
    with pytest.raises(ArgumentTypeError, match=r"unknown setting 'hope'; allowed: .*optimism"):
        variants.parsed("x:hope=1")
