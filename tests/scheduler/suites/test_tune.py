"""Suites as users ask for them, and bad input."""

from __future__ import annotations

import pytest

from tilewright.scheduler.suites.tune import tune_suite
from tilewright.spaces.errors import InputError


@pytest.mark.parametrize(
    ("given", "says"),
    [
        ({"suite": 3}, "3 is no suite"),
        ({"suite": "none.toml"}, "suite 'none.toml': No such file"),
        ({"objective": "speed"}, "objective='speed' is unknown; allowed: latency, speedup"),
        ({"target": "tpu"}, "unknown target 'tpu'"),
        ({"trials": 0}, "trials=0 is out of range"),
        ({"seconds": -1}, "seconds=-1 is out of range"),
        ({"patience": 0}, "patience=0 is out of range"),
        ({"seed": -1}, "seed=-1 is out of range"),
        ({"search": "luck"}, "unknown search 'luck'; allowed: evolutionary, "),
        ({"search": "random", "model": "model.json"}, "search=random follows no model"),
        ({"suite": "llama-3-8b", "objective": "speedup"}, "objective=speedup needs a library"),
    ],
)
def test_bad_input_is_refused_before_a_database_is_made(tmp_path, monkeypatch, given, says) -> None:
    monkeypatch.chdir(tmp_path)
    with pytest.raises(InputError) as error:
        tune_suite(**{"suite": "bert-base", **given})
    assert says in str(error.value)
    assert not list(tmp_path.iterdir())
