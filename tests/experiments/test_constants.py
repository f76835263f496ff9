"""The experiment with Clebsch-Gordan coefficients, at sizes that take no time."""

from __future__ import annotations

import json

import pytest

from experiments.constants.__main__ import main


def test_cases_are_compared_and_written(tmp_path):
    pytest.importorskip("e3nn")
    out = tmp_path / "found.json"
    words = ["--edges", "9", "--schedules", "2", "--rounds", "2", "--out", str(out)]
    main([*words, "--only", "l<=1, 64 channels"])
    (own,) = json.loads(out.read_text())["cases"].values()
    assert own["coefficients"] == [10, 256]
    assert own["schedule"].startswith("map")
    assert all(ratio["median"] > 0 for ratio in own["ratios"].values())
