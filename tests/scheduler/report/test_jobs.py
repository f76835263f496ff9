"""Suites and jobs: their layers, who computes them, and the gain of the whole."""

from __future__ import annotations

import xml.etree.ElementTree as ET
from pathlib import Path

import pytest

from tests.scheduler.report.made_up import HOSTILE, hostile, many, of_records, record, suite
from tilewright.measure.database import Database
from tilewright.measure.records.run import Run
from tilewright.measure.testing.made_up import TARGET
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.report.jobs import course, jobs_of, pareto
from tilewright.scheduler.report.material import Material, read_materials
from tilewright.spaces.operators import workload

pytest.importorskip("jinja2", reason="needs the extra report")


def materials_of(db: Path) -> list[Material]:
    with Database(db, create=False) as database:
        return read_materials(database)


def test_a_suite_tells_its_layers_who_computes_them_and_its_gain(tmp_path):
    (job,) = jobs_of(materials_of(suite(tmp_path / "suite")))
    assert (job.name, job.is_suite, job.seconds) == ("two layers", True, 40.0)
    softmax, layernorm, logsumexp = job.layers
    assert [layer.name for layer in job.layers] == [f"two layers {n}" for n in range(3)]
    assert [layer.weight for layer in job.layers] == [4.0, 1.0, 2.0]
    assert softmax.gain == pytest.approx(3.0)
    assert layernorm.gain == pytest.approx(1.25)
    assert logsumexp.gain is None
    assert job.gain == pytest.approx((4 * 6 + 5) / (4 * 2 + 4))
    assert job.share(softmax) == pytest.approx(16 / 17)
    assert softmax.seconds == pytest.approx(3 * 0.3)
    assert softmax.computed_by == ("contraction", "it is 2.00 x as fast as torch")
    assert layernorm.computed_by == ("torch", "the kernel has 0.75 x of its speed")
    assert logsumexp.computed_by == ("torch", "no kernel was right")
    assert job.measured == (pytest.approx((4 * 4 + 3) / (4 * 2 + 3)), 2)


def test_figures_show_each_layer_and_the_course_of_the_whole(tmp_path):
    materials = materials_of(suite(tmp_path / "suite"))
    figure = pareto(materials)
    (points,) = figure.series  # both took equally long: there are no stairs
    assert figure.count == 2
    assert sorted(points.y) == pytest.approx([1.25, 3.0])
    assert "two layers 0 gained most, 3.00 x" in figure.caption
    (steps,) = course(materials).series
    gains = [29 / (4 * latency + 5) for latency in (6, 3, 2)]
    assert steps.y == pytest.approx((*gains, 29 / 12, 29 / 12))
    assert steps.x == pytest.approx((0.0, 10.2, 20.2, 21.2, 40.0))


@pytest.mark.parametrize("weight", [1e308, 5e-324])
@pytest.mark.parametrize("scores", [(1e5, 1e4), (1e308, 1.0), (1e-300, 1e-310)])
def test_weights_and_times_that_cannot_be_count_for_nothing(tmp_path, weight, scores):
    told = {"suite": "strange", "sections": {"a": weight, "b": weight}}
    works = [workload("softmax", r=8, c=32 + n) for n in range(2)]
    runs = [Run(f"r{n}", w, TARGET, session="s", configuration=told) for n, w in enumerate(works)]
    records = [
        record(10 * turn + n, score, work, run=f"r{n}")
        for n, work in enumerate(works)
        for turn, score in enumerate(scores)
    ]
    materials = materials_of(of_records(tmp_path / "db", records, runs))
    (job,) = jobs_of(materials)
    assert [layer.weight for layer in job.layers] == [1.0, 1.0]
    assert job.gain in (None, 1.0, pytest.approx(10.0))
    assert pareto(materials).svg()
    assert course(materials).svg()


def test_the_fastest_rival_is_named(tmp_path):
    materials = {m.workload.operator: m for m in materials_of(suite(tmp_path / "suite"))}
    name, over = materials["softmax"].over_fastest or ("", None)
    assert (name, over and over.value) == ("torch", 2.0)
    assert materials["logsumexp"].over_fastest is None


def test_jobs_of_one_workload_are_listed_the_latest_first(tmp_path):
    assert jobs_of(materials_of(many(tmp_path / "many", 2, 4))) == []
    assert jobs_of(materials_of(of_records(tmp_path / "one", [record(1, 1e-3)]))) == []


def test_a_page_has_them_and_markup_stays_text(tmp_path, capsys):
    db = suite(tmp_path / "suite", "<script>alert(1)</script>")
    out = tmp_path / "report.html"
    assert run(["report", "--db", str(db), "--out", str(out)]) == 0
    text = out.read_text()
    assert "Suites and jobs" in text
    assert "<script>alert" not in text
    assert text.count("&lt;script&gt;alert(1)&lt;/script&gt; 2") == 1
    capsys.readouterr()
    for name in ("pareto", "course"):
        for source in (db, hostile(tmp_path / name)):
            words = ["report", "--db", str(source), "--format", "svg", "--only", name]
            assert run(words) == 0
            picture = ET.fromstring(capsys.readouterr().out)
            assert picture.findtext("{http://www.w3.org/2000/svg}title")
    assert "script" in HOSTILE
