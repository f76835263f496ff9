"""Lanes name places that are there, and take the tests that they name."""

from __future__ import annotations

import pytest

from tests.lanes import LANES, OUTSIDE, lane_of
from tests.pages import ROOT


def test_every_place_is_there() -> None:
    places = [place for own in LANES.values() for place in own]
    assert [place for place in (*places, *OUTSIDE) if not (ROOT / place).exists()] == []
    assert all(any(place.startswith(whole) for whole in places) for place in OUTSIDE)


@pytest.mark.parametrize(
    ("nodeid", "lane"),
    [
        ("tests/fuzz/test_a.py::test_b", "damaged input"),
        ("tests/measure/cluster/test_devices.py::test_c[tests/fuzz/]", "whole machine"),
        ("tests/measure/cluster/driver/test_plan.py::test_d", None),
        ("tests/scheduler/cli/commands/test_tune.py::test_e", "whole machine"),
        ("tests/scheduler/cli/test_text.py::test_f", None),
        ("tests/scheduler/torch/backend/test_g.py::test_h", "PyTorch"),
        ("tests/spaces/test_i.py::test_j", None),
    ],
)
def test_a_test_has_its_lane(nodeid: str, lane: str | None) -> None:
    assert lane_of(nodeid) == lane
