"""The picture of results: a line for each case, its interval, and the nearer roof."""

from __future__ import annotations

import pytest

from experiments.operators.picture import COPY, PEAK, dots, draw
from experiments.operators.summary import spread
from tilewright.spaces.cuda.target import cuda_target

TIMES = {
    "tilewright": [1.0, 2.0, 2.0, 2.0, 3.0],
    "eager": [9.0, 9.0],
    "compiled": [3.0, 4.0, 5.0],
    "copy": [1.0, 1.0],
}


def test_an_interval_is_of_quartiles_or_else_of_least_times():
    row = spread(TIMES)
    assert row["quartiles_s"]["compiled"] == [3.5, 4.5]
    earlier = {"median_s": row["median_s"], "least_s": row["least_s"]}
    results = {"cases": {"a": row, "b": earlier}, "peak_gflops": 10.0}
    first, second = dots([results])
    assert (first.rival, first.ratio, first.share, first.roof) == ("compiled", 2.0, 0.5, COPY)
    assert (first.low, first.high) == (3.5 / 2.0, 4.5 / 2.0)
    assert (second.low, second.high) == (3.0 / 2.0, 4.0 / 1.0)


def test_the_last_file_that_has_a_case_tells_of_it_and_its_place_is_that_of_the_first():
    def of(seconds):
        return spread({"tilewright": [1.0], "eager": [seconds]})

    first = {"cases": {"a": of(2.0), "b": of(3.0)}, "peak_gflops": 1.0}
    last = {"cases": {"a": of(4.0)}, "peak_gflops": 1.0}
    assert [(dot.name, dot.ratio) for dot in dots([first, last])] == [("a", 4.0), ("b", 3.0)]


def test_a_share_of_the_peak_is_told_where_it_is_nearer(tmp_path):
    target = cuda_target("sm_90a")
    row = spread({"tilewright": [1.0], "cublas": [1.5], "copy": [0.1]})
    row["tflops"] = {"tilewright": target.peak("float16") / 2e12}
    (dot,) = dots([{"cases": {"a product": row}, "target": target.to_json()}])
    assert (dot.share, dot.roof) == (pytest.approx(0.5), PEAK)
    draw([dot], tmp_path / "picture.svg")
    text = (tmp_path / "picture.svg").read_text()
    assert "a product" in text
    assert "cublas" in text
    assert "of the peak" in text
