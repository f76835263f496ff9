"""Compiled models: regions of graphs, who computes them, and the gain of the whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from tests.scheduler.report.made_up import PRINTABLE, of_records, record
from tilewright.measure.database import Database
from tilewright.measure.records.run import Run, note
from tilewright.measure.testing.made_up import TARGET
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.report.graphs import Graph, graphs_of
from tilewright.scheduler.report.jobs import jobs_of
from tilewright.scheduler.report.material import read_materials
from tilewright.spaces.operators import workload

pytest.importorskip("jinja2", reason="needs the extra report")

WORKS = [workload(name, r=8, c=64) for name in ("softmax", "layernorm")]
KERNEL = {"places": 4, "region_seconds": 1e-3, "region_torch_seconds": 2e-3, "by": "tilewright"}
TORCH = {"places": 3, "region_seconds": 5e-3, "region_torch_seconds": 4e-3, "by": "torch"}
WHOLE = {"graph": "inference", "model": "Bert", "ours_seconds": 10e-3}


def graph(session: str, at: float, *told: dict[str, Any], torch: float | None = 12e-3) -> list[Run]:
    """The notes of a graph of the workloads, with what each says."""
    return [
        replace(
            note(work, TARGET, session=session, library_seconds=torch),
            configuration=WHOLE | {"why": "as timed"} | each,
            started_at=at,
            heartbeat=at,
            ended_at=at,
        )
        for work, each in zip(WORKS, told, strict=False)
    ]


def database_of(folder: Path, *runs: Run) -> Path:
    return of_records(folder, [record(n, 1e-3, work) for n, work in enumerate(WORKS)], list(runs))


def graphs_in(db: Path) -> list[Graph]:
    with Database(db, create=False) as database:
        materials = read_materials(database)
    assert jobs_of(materials) == []
    return graphs_of(materials)


def test_a_graph_tells_who_computes_its_regions_and_both_gains(tmp_path):
    (found,) = graphs_in(database_of(tmp_path / "db", *graph("graph 1", 1.7e9, TORCH, KERNEL)))
    layernorm, softmax = found.regions
    assert [each.material.workload for each in found.regions] == WORKS[::-1]
    assert (layernorm.count, layernorm.computed_by) == (4, ("tilewright", "as timed"))
    assert (softmax.count, softmax.computed_by) == (3, ("torch", "as timed"))
    assert (layernorm.saved, softmax.saved) == (pytest.approx(4e-3), 0)
    assert found.expected == pytest.approx(12 / 8)
    assert found.measured == pytest.approx(12 / 10)
    assert (found.model, found.kind) == ("Bert", "inference")


def test_of_equal_graphs_the_latest_is_shown_and_the_latest_first(tmp_path):
    runs = [
        *graph("a", 1.7e9, KERNEL, TORCH),
        *graph("b", 1.7e9 + 2, KERNEL, TORCH, torch=20e-3),
        *graph("c", 1.7e9 + 3, KERNEL | {"graph": "backward"}),
        *graph("d", 1.7e9 + 1, KERNEL),
    ]
    found = graphs_in(database_of(tmp_path / "db", *runs))
    assert [each.compiled_at - 1.7e9 for each in found] == [3, 2, 1]
    assert [len(each.regions) for each in found] == [1, 2, 1]


@pytest.mark.parametrize("bad", [{}, [], "1", 0, -1.0, True, None])
def test_what_a_stranger_noted_is_no_number(tmp_path, bad):
    told = {"places": bad, "region_seconds": bad, "ours_seconds": bad, "by": bad, "model": bad}
    (found,) = graphs_in(database_of(tmp_path / "db", *graph("a", 1.7e9, KERNEL | told)))
    (region,) = found.regions
    assert region.saved == 0
    assert region.count == 1
    assert found.expected == 1
    assert isinstance(found.model, str)


def test_times_that_cannot_be_add_up_to_nothing(tmp_path):
    huge, tiny = {"region_seconds": 1e308, "places": 2**62}, {"region_torch_seconds": 1e308}
    runs = graph("a", 1.7e9, KERNEL | huge, KERNEL | tiny, torch=1e308)
    (found,) = graphs_in(database_of(tmp_path / "db", *runs))
    assert [each.saved for each in found.regions] == [0, 0]
    assert (found.expected, found.measured) == (None, None)


def test_a_page_has_the_table_and_markup_stays_text(tmp_path):
    told = dict.fromkeys(("model", "graph", "by", "why"), PRINTABLE)
    runs = [*graph("a", 1.7e9, KERNEL, TORCH), *graph("b", 1.7e9 + 1, KERNEL | told)]
    out = tmp_path / "report.html"
    db = database_of(tmp_path / "db", *runs)
    assert run(["report", "--db", str(db), "--out", str(out)]) == 0
    text = out.read_text()
    assert "Compiled models" in text
    assert "<summary>Bert, inference on " in text
    assert ": 1.20 x</summary>" in text
    assert "<dd>1.50 x</dd>" in text
    assert "<img" not in text
    assert text.count("<script>") == 1


def test_a_page_without_compiled_models_has_no_such_table(tmp_path):
    out = tmp_path / "report.html"
    assert run(["report", "--db", str(database_of(tmp_path / "db")), "--out", str(out)]) == 0
    assert "Compiled models" not in out.read_text()
