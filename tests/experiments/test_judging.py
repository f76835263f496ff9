"""Bounds by a GPU against the host's, and their times."""

import numpy as np

from experiments.judging import __main__ as judging
from experiments.judging.__main__ import compared, judged
from tests.measure.cuda.emulated_device import EmulatedDevice
from tilewright.measure.drawing.programs import Points
from tilewright.spaces.operators import workload


def test_the_device_and_the_host_agree() -> None:
    found = judged(EmulatedDevice(), workload("softmax r=33 c=9 dtype=float16"))
    assert found["same"] == 1
    assert found["bounds"] == 2 * 33 * 9


def test_they_do_at_some_rows(monkeypatch) -> None:
    monkeypatch.setattr(judging, "SEARCH_POINTS", 90)
    monkeypatch.setattr(judging, "POINTS", Points(120, 1 << 20, one_axis=True))
    found = judged(EmulatedDevice(), workload("softmax r=33 c=9 dtype=float16"))
    assert found["same"] == 1
    assert 0 < found["host_share_of_rows"] < 0.5
    assert found["bounds"] == round(2 * 33 * 9 * found["host_share_of_rows"])


def test_what_differs_is_told() -> None:
    low, high = np.array([1.0, 2.0, -np.inf]), np.array([1.5, 2.5, np.inf])
    found = compared({"y": np.array([[1.0, 2.1, 0], [1.5, 2.5, 0]])}, {"y": (low, high)})
    assert found["bounds"] == 4
    assert found["same"] == 0.75
    assert round(found["largest_difference"], 6) == 0.2
