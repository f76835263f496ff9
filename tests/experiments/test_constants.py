"""The experiment with Clebsch-Gordan coefficients and complex numbers, at small sizes."""

from __future__ import annotations

import json

import pytest

from experiments.constants.__main__ import compare, main
from experiments.constants.spectral import CASES, Spectral
from tilewright import detect_target


def test_cases_are_compared_and_written(tmp_path):
    pytest.importorskip("e3nn")
    out = tmp_path / "found.json"
    words = ["--edges", "9", "--schedules", "2", "--rounds", "2", "--out", str(out)]
    main([*words, "--only", "l<=1, 64 channels"])
    (own,) = json.loads(out.read_text())["cases"].values()
    assert own["coefficients"] == [10, 256]
    assert own["schedule"].startswith("map")
    assert all(ratio["median"] > 0 for ratio in own["ratios"].values())


@pytest.mark.parametrize("case", [Spectral(2, 3, 4, 9), Spectral(2, 3, 4, 9, "mbi", "mio")])
def test_complex_products_are_those_of_torch(case):
    assert {case.y for case in CASES.values()} == {"bom", "mbo"}
    found = compare(case, 0, detect_target("cpu", 1), 1, 2)
    assert set(found["ratios"]) == {"torch.einsum", "torch.bmm"}
