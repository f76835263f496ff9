"""Kernel Tuner's strategies on recorded spaces, as far as that works without its package."""

from __future__ import annotations

import json
import sys

import pytest

from experiments.search import page
from experiments.search.__main__ import as_cache, scored
from tests.scheduler.replay.toys import hilly
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.scheduler.replay.repeats import Settings


def test_what_they_are_given_is_the_recording(tmp_path):
    recording = hilly()
    path = tmp_path / "hilly.json"
    path.write_text(json.dumps(as_cache(recording)))
    [back] = read_recordings(path, pytest.fail)
    assert back.outcomes.keys() == recording.outcomes.keys()
    assert back.failures == recording.failures > 0
    assert back.optimum == pytest.approx(recording.optimum)
    path.write_text(json.dumps(as_cache(recording, hide_failures=True)))
    [ran] = read_recordings(path, pytest.fail)
    assert (len(ran.outcomes), ran.failures) == (len(back.outcomes) - back.failures, 0)


PEER = f"""#!{sys.executable}
import json, sys
cache = json.load(open(sys.argv[2]))
if sys.argv[3] == "broken":
    sys.exit("it is broken")
trials, seed, repeats = map(int, sys.argv[4:])
for run in range(repeats):
    entries = list(cache["cache"].values())[run : run + trials]
    print(json.dumps([[entry[name] for name in cache["tune_params_keys"]] for entry in entries]))
"""


@pytest.fixture
def peer(tmp_path):
    """Stands for their Python: it evaluates what comes first in the cache."""
    path = tmp_path / "python"
    path.write_text(PEER)
    path.chmod(0o755)
    return path


def test_their_runs_are_scored_as_ours(peer):
    recording = hilly()
    [report] = scored(peer, "first", [recording], Settings(10, 3, 1, 0))
    assert (report["space"], report["search"]) == ("hilly", "kernel_tuner.first")
    seconds = recording.seconds
    for run, gains in enumerate(report["gains"]):
        assert gains[-1][1] == min(seconds[run : run + 10])
    assert 0 < report["scores"]["fraction_10"]["value"] < 1


def test_a_strategy_that_cannot_be_run_is_told_of(peer, capsys):
    assert list(scored(peer, "broken", [hilly()], Settings(10, 3, 1, 0))) == []
    assert "kernel_tuner.broken on hilly: it is broken" in capsys.readouterr().err


def test_the_page_follows_from_the_committed_results(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["page", "--out", str(tmp_path)])
    page.main()
    assert (tmp_path / "page.md").read_text() == (page.RESULTS / "page.md").read_text()
    plots = {"curves.svg", "ranking.svg", "predicted.svg"}
    assert {path.name for path in tmp_path.iterdir()} == {"page.md", *plots}
