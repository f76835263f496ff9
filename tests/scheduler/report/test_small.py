"""The small form of a report of a compiled model."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from tests.scheduler.report.made_up import HOSTILE
from tilewright.scheduler.report.small import regions


def test_a_notebook_shows_who_computes_the_regions_of_a_model_and_the_gain():
    pytest.importorskip("torch", reason="needs the extra torch")
    from tilewright.scheduler.torch.backend.explanation import (
        Explanation,
        GraphReport,
        RegionReport,
    )

    told = [
        RegionReport(HOSTILE, "tilewright", "faster", 12, ours_seconds=1e-3, torch_seconds=2e-3),
        RegionReport("y = x", "torch", "slower", 2, ours_seconds=4e-3, torch_seconds=3e-3),
        RegionReport("z = y", "torch", "nobody measured it"),
    ]
    whole = {"ours_seconds": 1.0, "torch_seconds": 1.3}
    made = Explanation([GraphReport("inference", "tilewright", regions=told, **whole)])
    figure = regions(made)
    (bars,) = figure.series
    assert bars.x == pytest.approx((2.0, 0.75))
    assert f"{30 / 18:.2f} x expected of the regions that were timed" in figure.caption
    assert "1.30 times as fast as torch alone" in figure.caption
    words, _, picture = made._repr_html_().partition("</pre>")
    assert "<script>" not in words
    names = [each.text for each in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text")]
    assert "torch: y = x" in names
    assert Explanation()._repr_html_() == "<pre></pre>"
