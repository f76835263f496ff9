"""The page and the picture of all results are made from the committed files alone."""

from __future__ import annotations

import json
import re
from xml.etree import ElementTree

import pytest

from experiments.overview import reading
from experiments.overview.__main__ import DOCS, points, texts
from experiments.overview.entries import CPU, Entry
from experiments.overview.picture import draw


@pytest.mark.parametrize("name", ["explained/results.md", "_static/speedup.svg"])
def test_the_committed_file_is_what_the_command_writes(name):
    assert (DOCS / name).read_text() == texts()[name]


def test_the_picture_has_a_point_for_each_case_and_losses_in_another_shape():
    drawn = points()
    ratios = [r for found in drawn.values() for values in found.values() for r in values]
    shapes = [element.tag.rpartition("}")[2] for element in ElementTree.fromstring(draw(drawn))]
    assert shapes.count("circle") == sum(r >= 1 for r in ratios) + 1  # and one in the legend
    assert shapes.count("rect") == sum(r < 1 for r in ratios) + 1


@pytest.mark.parametrize("name", ["entries.py", "reading.py", "page.py"])
def test_no_ratio_is_written_in_the_sources(name):
    source = (reading.EXPERIMENTS / "overview" / name).read_text()
    assert not re.findall(r"(?<![\w.])\d+\.\d+", source)


def test_a_changed_file_changes_the_ratio(tmp_path, monkeypatch):
    def row(ours, theirs):
        return {"median_s": {"tilewright": ours, "eager": theirs, "copy": 0.1, "alone": 0.1}}

    cases = {"a": row(2.0, 3.0), "b": row(4.0, 2.0), "other": row(1.0, 9.0)}
    (tmp_path / "first.json").write_text(json.dumps({"cases": cases}))
    (tmp_path / "second.json").write_text(json.dumps({"cases": {"a": row(2.0, 4.0)}}))
    monkeypatch.setattr(reading, "EXPERIMENTS", tmp_path)
    found = reading.read(Entry(CPU, "k", "w", "o", ("first.json", "second.json"), only="^.$"))
    assert [(case.name, case.rival, case.ratio) for case in found.cases] == [
        ("a", "eager", 2.0),
        ("b", "eager", 0.5),
    ]
    assert found.mean == pytest.approx(1.0)
    assert [case.name for case in found.losses] == ["b"]


def test_a_mode_of_numerics_has_a_ratio_of_its_own(tmp_path, monkeypatch):
    def row(fast):
        fastest = {"tilewright, fast": fast} if fast else {}
        own = {"fast": {"schedule": {"template": "winograd"}}} if fast else {}
        return {"median_s": {"tilewright": 2.0, "eager": 3.0, **fastest}, **own}

    (tmp_path / "modes.json").write_text(json.dumps({"cases": {"a": row(1.0), "b": row(None)}}))
    monkeypatch.setattr(reading, "EXPERIMENTS", tmp_path)
    strict, fast = (
        reading.read(Entry(CPU, "Convolutions", "two", "torch", ("modes.json",), numerics=mode))
        for mode in ("strict", "fast")
    )
    assert [(c.rival, c.ratio, c.winograd) for c in strict.cases] == [("eager", 1.5, False)] * 2
    assert [(c.rival, c.ratio, c.winograd) for c in fast.cases] == [
        ("eager", 3.0, True),
        ("eager", 1.5, False),
    ]
