"""The experiment with scans and recurrences, at sizes that take no time."""

from __future__ import annotations

import json

from experiments.scans.__main__ import main
from experiments.scans.cases import CASES


def test_cases_are_compared_and_written(tmp_path):
    out = tmp_path / "found.json"
    chosen = ["cumsum 8 x 524288", "cumsum down 700 x 3000", "state space 1024", "gated 1024"]
    chosen += ["gated delta rule 4096", "selective scan 1024", "gates 1024"]
    words = ["--small", "--schedules", "2", "--rounds", "2", "--out", str(out), "--only", *chosen]
    main(words)
    found = json.loads(out.read_text())["cases"]
    assert set(found) == set(chosen) <= set(CASES)
    for name, own in found.items():
        template = "scan" if name.startswith("cumsum") else CASES[name].template
        assert own["schedules"][template].startswith(template)
        assert all(ratio["median"] > 0 for ratio in own["ratios"].values())
