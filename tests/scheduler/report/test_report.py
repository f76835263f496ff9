"""``tilewright report``: a page that loads nothing, figures as pictures and as data."""

from __future__ import annotations

import json
import os
import re
import subprocess
import sys
import xml.etree.ElementTree as ET
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest

from tests.pages import PATHS
from tests.scheduler.report.made_up import (
    HOSTILE,
    hostile,
    many,
    of_records,
    record,
    sampled,
    tuned,
)
from tests.spaces.frozen import TARGETS
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind
from tilewright.measure.testing.made_up import WORKLOAD
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.report.drawing.png import png
from tilewright.scheduler.report.figures import FIGURES
from tilewright.scheduler.report.jobs import WHOLE
from tilewright.scheduler.report.material import read_materials, texts_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.workload import Workload

pytest.importorskip("jinja2", reason="needs the extra report")

SVG = "{http://www.w3.org/2000/svg}"


def softmax(n: int) -> Workload:
    return workload("softmax", r=8, c=32 + n)


class Page(HTMLParser):
    """A page as a browser reads it: tags with their attributes, and all text."""

    def __init__(self, path: Path) -> None:
        super().__init__()
        self.tags: list[tuple[str, dict[str, str]]] = []
        self.text, self.scripts, self.styles = "", [], []
        self._within = ""
        self.source = path.read_text()
        self.feed(self.source)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, {name: value or "" for name, value in attrs}))
        self._within = tag

    def handle_endtag(self, tag: str) -> None:
        self._within = ""

    def handle_data(self, data: str) -> None:
        if self._within in ("script", "style"):
            (self.scripts if self._within == "script" else self.styles).append(data)
        else:
            self.text += data

    def points(self) -> dict[str, int]:
        """The points of each figure of the first workload."""
        found, name = {}, ""
        for tag, values in self.tags:
            name = values.get("data-figure", name)
            if tag == "svg":
                found.setdefault(name, int(values["data-points"]))
        return found


def page_of(db: Path, *more: str) -> Page:
    out = db.with_name("report.html")
    assert run(["report", "--db", str(db), "--out", str(out), *more]) == 0
    return Page(out)


def refused(capsys, *words: str) -> str:
    assert run(["report", *words]) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert len(line) <= 212
    return line


def test_a_page_shows_all_that_a_run_recorded_and_loads_nothing(tmp_path, capsys):
    db = tuned(tmp_path)
    page = page_of(db)
    assert capsys.readouterr().out == f"report written to {tmp_path / 'report.html'}\n"
    with Database(db, create=False) as database:
        records = list(database.records())
    right = [r for r in records if r.measurement.round == "search" and r.measurement.ok]
    points = page.points()
    assert points["history"] == len(records)
    assert points["quiet"] if any(r.measurement.reference_samples for r in records) else True
    assert points["predicted"] == sum(r.proposal.mean is not None for r in right)
    assert "crash" in page.text
    assert "Against" not in page.text
    loaded = [v for _, values in page.tags for n, v in values.items() if n in ("src", "href")]
    assert all(link.startswith("#") for link in loaded)
    assert "://" not in re.sub(r"http://www\.w3\.org/\S+", "", page.source)


def test_the_policy_allows_the_page_its_own_script_and_style_alone(tmp_path):
    page = page_of(tuned(tmp_path, 8))
    (policy,) = [v["content"] for t, v in page.tags if v.get("http-equiv")]
    (script,), (style,) = page.scripts, page.styles
    assert policy.startswith("default-src 'none'; ")
    for name, text in (("script-src", script), ("style-src", style)):
        digest = b64encode(sha256(text.encode()).digest()).decode()
        assert f"{name} 'sha256-{digest}'" in policy
    assert not any(name.startswith("on") or name == "style" for _, v in page.tags for name in v)


def test_every_figure_is_a_picture_with_a_title_and_is_data(tmp_path, capsys):
    db = str(tuned(tmp_path, 24))
    for name in FIGURES:
        assert run(["report", "--db", db, "--format", "svg", "--only", name]) == 0
        picture = ET.fromstring(capsys.readouterr().out)
        assert picture.tag == f"{SVG}svg"
        assert picture.findtext(f"{SVG}title")
        assert run(["report", "--db", db, "--format", "json", "--only", name]) == 0
        ((found,),) = [each["figures"] for each in json.loads(capsys.readouterr().out)]
        assert found["name"] == name
    assert run(["report", "--db", db, "--format", "json"]) == 0
    (found,) = json.loads(capsys.readouterr().out)
    assert [figure["name"] for figure in found["figures"]] == list(FIGURES)
    assert found["workload"]
    assert found["target"]


def test_markup_in_every_field_of_a_database_stays_text(tmp_path, capsys):
    db = hostile(tmp_path / "hostile")
    page = page_of(db, "--compare", str(hostile(tmp_path / "other")))
    tags = [tag for tag, _ in page.tags]
    assert tags.count("script") == 1
    assert "img" not in tags
    assert "</script><script>document.title='x'</script>" in page.text
    assert "{{7*7}}" in page.text
    assert "\x1b" not in page.source
    assert "\u202e" not in page.source
    capsys.readouterr()
    for name in FIGURES:
        assert run(["report", "--db", str(db), "--format", "svg", "--only", name]) == 0
        picture = ET.fromstring(capsys.readouterr().out)
        assert {tag.tag for tag in picture.iter()} <= {
            f"{SVG}{tag}" for tag in ("svg", "style", "title", "g", "path", "text", "rect")
        }


def test_one_trial_makes_a_page(tmp_path):
    page = page_of(of_records(tmp_path / "one", [record(1, 1e-3)]))
    assert page.points()["history"] == 1
    assert "1 attempt, 0 failed" in page.text


def test_a_run_without_a_right_kernel_shows_each_kind_of_failure(tmp_path):
    records = [record(n, None, kind=kind, text=f"why {kind}") for n, kind in enumerate(ErrorKind)]
    page = page_of(of_records(tmp_path / "failed", records))
    assert "no kernel was right" in page.text
    for kind in ErrorKind:
        assert f"1 {kind}" in page.text
        assert f"why {kind}" in page.text


def test_a_failure_shows_the_source_of_its_kernel(tmp_path):
    db = sampled(tmp_path / "real", softmax(0), TARGETS["avx512"], bad=2)
    with Database(db, create=False) as database:
        (material,) = read_materials(database)
        failed = next(r for r in material.records if r.measurement.score is None)
        assert material.space is not None
        source = material.space.lower(failed.schedule).source.body
    page = page_of(db)
    _, _, shown = page.text.partition("Its source")
    assert shown.startswith(source.rstrip())
    assert page.text.count("Its source") == 1


def test_captions_answer_what_failed_and_whether_more_is_worth_it(tmp_path):
    texts = ("no room for <b>\x1b\nmore", "no room for <b>\x1b\nelse", "another")
    records = [record(9 + n, None, text=text) for n, text in enumerate(texts)]
    records += [record(n, 1e-3 * (3 + abs(n - 2))) for n in range(1, 7)]
    with Database(of_records(tmp_path / "some", records), create=False) as database:
        (material,) = read_materials(database)
    said = FIGURES["failures"](material).caption
    assert said.startswith("3 of 9 attempts failed; 2 of them by wrong_result: no room for <b>")
    assert "\x1b" not in said
    fastest = next(n for n, r in material.numbered if r.measurement.score == 3e-3)
    said = FIGURES["history"](material).caption
    assert said.endswith(f"at trial {fastest}; none was faster in the {9 - fastest} after it")


def test_regressions_come_first_and_have_an_interval(tmp_path):
    here, there = tmp_path / "here", tmp_path / "there"
    works = [softmax(n) for n in range(3)]
    ours = zip(works, (2e-3, 1e-3, 1e-3), strict=True)
    theirs = zip(works, (1e-3, 1e-3, 3e-3), strict=True)
    new = of_records(here, [record(1, score, work) for work, score in ours])
    old = of_records(there, [record(1, score, work) for work, score in theirs])
    page = page_of(new, "--compare", str(old))
    text = " ".join(page.text.split())
    verdicts = re.findall(r"slower|faster than|equal within the interval|3\.00 x|0\.50 x", text)
    assert verdicts.index("slower") < verdicts.index("equal within the interval")
    assert "3 pairs of the same workload and target" in text


def test_ratios_are_drawn_with_their_intervals_and_are_data(tmp_path, capsys):
    works = [softmax(n) for n in range(3)]
    new, old = (
        of_records(tmp_path / name, [record(1, s, w) for w, s in zip(works, scores, strict=True)])
        for name, scores in (("new", (2e-3, 1e-3, 1e-3)), ("old", (1e-3, 1e-3, 3e-3)))
    )
    words = ["report", "--db", str(new), "--compare", str(old), "--format"]
    assert run([*words, "json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert [pair["verdict"] for pair in told["pairs"]] == [
        "slower", "equal within the interval", "faster",
    ]  # fmt: skip
    assert [pair["ratio"]["value"] for pair in told["pairs"]] == pytest.approx([0.5, 1.0, 3.0])
    assert told["mean"] == pytest.approx(1.5 ** (1 / 3))
    assert run([*words, "json", "--only", "ratios"]) == 0
    drawn = json.loads(capsys.readouterr().out)["series"]
    spans = [each["x"] for each in drawn if each["kind"] == "spans"]
    assert spans == [[pair["ratio"]["low"], pair["ratio"]["high"]] for pair in told["pairs"]]
    assert run([*words, "svg", "--only", "ratios"]) == 0
    picture = ET.fromstring(capsys.readouterr().out)
    assert picture.get("data-points") == "3"
    assert len([path for path in picture if "spans" in path.get("class", "")]) == 3
    assert run(["report", "softmax", "r=8", "c=32", *words[1:], "json"]) == 0
    alone = json.loads(capsys.readouterr().out)
    assert (len(alone["pairs"]), alone["only_here"], alone["only_there"]) == (1, 0, 0)


@pytest.mark.parametrize("score", [5e-324, 1e-310, 1e300, 1.7e308])
def test_times_that_cannot_be_are_no_reason_to_fail(tmp_path, score):
    """A stranger's database may hold any number; the page, the figures and comparisons stand it."""
    records = [record(0, 1e-3), record(1, score), record(2, score, softmax(1))]
    strange, sound = of_records(tmp_path / "a", records), of_records(tmp_path / "b", records[:1])
    out = tmp_path / "report.html"
    for words in ((strange,), (strange, "--compare", sound), (sound, "--compare", strange)):
        assert run(["report", "--db", *map(str, words), "--out", str(out)]) == 0
        assert "What was tuned" in out.read_text()


def test_databases_that_share_nothing_are_said_to(tmp_path):
    one = of_records(tmp_path / "one", [record(1, 1e-3)])
    other = of_records(tmp_path / "other", [record(1, 1e-3, softmax(0))])
    page = page_of(one, "--compare", str(other))
    assert "The two databases share nothing." in page.text


def test_workloads_are_named_by_operator_or_text(tmp_path):
    db = many(tmp_path / "many", 3, 4)
    assert len(page_of(db, "softmax").points()) > 0
    with Database(db, create=False) as database:
        assert len(read_materials(database, ["softmax"])) == 3
        assert len(read_materials(database, ["softmax", "r=8", "c=33"])) == 1
        assert len(read_materials(database, ["softmax r=8 c=33", "softmax", "r=8", "c=34"])) == 2
    assert list(texts_of(["a", "x=1", "y=2", "b r=1", "c"])) == ["a x=1 y=2", "b r=1", "c"]


def test_bad_input_is_one_line(tmp_path, capsys):
    db = str(of_records(tmp_path / "one", [record(1, 1e-3)]))
    empty = str(of_records(tmp_path / "empty", []))
    for words in (("--db", empty), ("--db", db, "--compare", empty)):
        assert f"database {empty} has no trials to report" in refused(capsys, *words)
    assert "no trial of 'matmull'; did you mean matmul?" in refused(capsys, "matmull", "--db", db)
    svg = ("--db", db, "--format", "svg")
    assert "'histery' is unknown; did you mean history?" in refused(
        capsys, *svg, "--only", "histery"
    )
    assert "needs the name of a figure" in refused(capsys, *svg)
    assert "--only names a single figure" in refused(capsys, "--db", db, "--only", "time")
    said = refused(capsys, *svg, "--compare", db, "--only", "history")
    assert "figure 'history' is unknown; allowed: ratios" in said
    missing = str(tmp_path / "missing" / "x.html")
    nothing = str(tmp_path / "nothing.db")
    for read in (db, nothing):  # before anything is read
        assert f"cannot write {missing}" in refused(capsys, "--db", read, "--out", missing)
    assert "is a database" in refused(capsys, "--db", db, "--out", db)
    assert "no database" in refused(capsys, "--db", nothing)


def test_figures_are_png_where_resvg_is(tmp_path, capsysbinary):
    resvg = pytest.importorskip("resvg_py", reason="needs the extra report")
    db = str(tuned(tmp_path, 24))
    for name in (*FIGURES, *WHOLE):
        assert run(["report", "--db", db, "--format", "png", "--only", name]) == 0
        picture = capsysbinary.readouterr().out
        assert picture.startswith(b"\x89PNG\r\n")
        assert int.from_bytes(picture[16:20]) == 880
    with Database(db, create=False) as database:
        figure = FIGURES["history"](read_materials(database)[0])
    figure.save(tmp_path / "x.png")
    whole = (tmp_path / "x.png").read_bytes()
    assert whole == figure.png()
    nameless = re.sub(r"<text.*?</text>", "", figure.svg())
    assert whole != bytes(resvg.svg_to_bytes(svg_string=nameless, zoom=2, background="#fff"))


def test_a_picture_without_a_font_is_refused(capsys):
    pytest.importorskip("resvg_py", reason="needs the extra report")
    with pytest.raises(InputError, match="a PNG needs one of the fonts none such; allowed: --form"):
        png("<svg/>", "none such")


def test_a_picture_is_of_one_workload(tmp_path, capsys):
    db = str(many(tmp_path / "many", 2, 2))
    said = refused(capsys, "--db", db, "--format", "svg", "--only", "history")
    assert "a picture is of one workload and target, and 2 are there" in said


def test_figures_in_python_show_and_save_themselves(tmp_path):
    from tilewright import plot

    db = tuned(tmp_path, 16)
    with Database(db, create=False) as database:
        ((known, target),) = database.pairs()
        figure = plot.history(known, target, database)
        assert plot.roofline(known, target, database).name == "roofline"
        with pytest.raises(InputError, match="the database has no trial of matmul m=64"):
            plot.history(WORKLOAD, target, database)
        with pytest.raises(InputError, match="figure 'pie' is unknown; allowed: history"):
            plot.figure("pie", known, target, database)
    assert figure._repr_svg_().startswith("<svg ")
    figure.save(tmp_path / "x.svg")
    figure.save(tmp_path / "x.json")
    assert (tmp_path / "x.svg").read_text() == figure.svg()
    assert json.loads((tmp_path / "x.json").read_text())["name"] == "history"


def test_a_plain_run_does_not_load_the_report():
    code = (
        "import sys, tilewright.scheduler.cli.commands.tune, tilewright.scheduler.cli.job; "
        "sys.exit(any(name.startswith(('jinja2', 'starlette', 'tilewright.scheduler.report')) "
        "for name in sys.modules))"
    )
    path = os.pathsep.join([PATHS, *sys.path])
    done = subprocess.run([sys.executable, "-c", code], env=os.environ | {"PYTHONPATH": path})
    assert done.returncode == 0


def test_hostile_text_is_what_the_tests_need():
    assert "<script>" in HOSTILE
    assert not HOSTILE.isprintable()
