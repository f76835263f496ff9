"""Bounds by a GPU against the host's, and their times."""

import numpy as np

from experiments.judging.__main__ import compared, judged
from spaces.operators import workload
from tests.measure.cuda.emulated_device import EmulatedDevice


def test_the_device_and_the_host_agree() -> None:
    found = judged(EmulatedDevice(), workload("softmax r=33 c=9 dtype=float16"))
    assert found["same"] == 1
    assert found["bounds"] == 2 * 33 * 9


def test_what_differs_is_told() -> None:
    low, high = np.array([1.0, 2.0, -np.inf]), np.array([1.5, 2.5, np.inf])
    found = compared({"y": np.array([[1.0, 2.1, 0], [1.5, 2.5, 0]])}, {"y": (low, high)})
    assert found["bounds"] == 4
    assert found["same"] == 0.75
    assert round(found["largest_difference"], 6) == 0.2
