"""Pictures of ratios: losses have their own colour and shape, intervals are drawn, panels agree."""

from __future__ import annotations

from xml.etree import ElementTree

from experiments.ratios import FASTER, SLOWER, Panel, Point, Row, by_shape, draw


def elements(text: str, tag: str) -> list[ElementTree.Element]:
    return [each for each in ElementTree.fromstring(text) if each.tag.rpartition("}")[2] == tag]


def test_a_loss_has_a_colour_and_a_shape_of_its_own_and_intervals_are_drawn():
    rows = {"a": Row([Point(2.0, 1.5, 2.5)], ["cuBLAS"]), "b": Row([Point(0.5)], ["<triton>"])}
    text = draw("title", "words", [Panel("", rows, [("rival", 90)])])
    assert [each.get("fill") for each in elements(text, "circle")] == [FASTER] * 2  # and a legend
    assert [each.get("fill") for each in elements(text, "rect")] == [SLOWER] * 2
    [interval] = [each for each in elements(text, "line") if each.get("stroke") == FASTER]
    [circle] = [each for each in elements(text, "circle") if each.get("r") == "2.6"]
    assert float(interval.get("x1")) < float(circle.get("cx")) < float(interval.get("x2"))
    words = [each.text for each in elements(text, "text")]
    assert {"cuBLAS", "<triton>", "rival"} < set(words)


def test_panels_have_one_scale_and_rows_that_agree():
    one, other = (Panel(name, {"a": Row([Point(ratio)])}) for name, ratio in (("x", 1), ("y", 8)))
    text = draw("title", "words", [one, other])
    ticks = [float(each.get("x1")) for each in elements(text, "line")]
    half = len(ticks) // 2
    assert {round(b - a, 1) for a, b in zip(ticks[:half], ticks[half:], strict=True)} == {284.0}
    first, last = (each for each in elements(text, "circle") if each.get("r") == "2.6")
    assert first.get("cy") == last.get("cy")
    assert float(first.get("cx")) == ticks[0]
    assert float(last.get("cx")) == ticks[-1]


def test_names_are_sorted_by_shape():
    names = ["conv 8", "512x64 float32", "64x512 float32", "64x64 float32"]
    assert sorted(names, key=by_shape) == [names[3], names[2], names[1], names[0]]


def test_nothing_makes_an_empty_picture():
    assert draw("title", "words", [Panel("", {})]).startswith("<svg ")
