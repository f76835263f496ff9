"""The experiment with operators over ranges of entries, at sizes that take no time."""

from __future__ import annotations

import json

from experiments.ragged.__main__ import main
from experiments.ragged.cases import CASES


def test_cases_are_compared_and_written(tmp_path):
    chosen = [
        "weighted 170k x 32",
        "mean 170k x 128",
        "scores 170k x 128",
        "attention 170k x 128",
        "linear 80 % x 8",
    ]
    out = tmp_path / "found.json"
    words = ["--small", "--seconds", "0", "--rounds", "2", "--out", str(out), "--only", *chosen]
    main(words)
    found = json.loads(out.read_text())["cases"]
    assert set(found) == set(chosen) <= set(CASES)
    for own in found.values():
        assert own["ratio"] > 0
        assert own["schedule"].startswith("ragged")
