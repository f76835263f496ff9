from __future__ import annotations

import numpy as np
import pytest

from tilewright.costmodel.explaining.explanation import Explanation
from tilewright.scheduler.explanation_plot import plot_explanation

pytest.importorskip("matplotlib", reason="needs the extra plot")


def test_the_same_explanation_gives_the_same_picture(tmp_path):
    generator = np.random.default_rng(0)
    values = generator.random((40, 30))
    values[:, 3] = np.nan
    values[:, 4] = 1.0
    names = [f"schedule.{i}" for i in range(30)]
    found = Explanation(names, values, generator.standard_normal((40, 30)), 0.5)
    for name in ("one.svg", "two.svg", "one.png"):
        plot_explanation(found, tmp_path / name, "a $\\model$ of <mine>")
    assert (tmp_path / "one.svg").read_bytes() == (tmp_path / "two.svg").read_bytes()
    assert (tmp_path / "one.png").read_bytes().startswith(b"\x89PNG")
