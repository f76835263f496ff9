"""A browser opens reports and a dashboard at two widths, light and dark, and uses them."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from tests.browsing import Visit, chromium, opened
from tests.scheduler.report.made_up import hostile, many, of_records, record, sampled, suite, tuned
from tests.scheduler.report.served import Server
from tests.spaces.frozen import TARGETS
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import ErrorKind
from tilewright.scheduler.cli.app import run
from tilewright.scheduler.report.outline import outline
from tilewright.scheduler.report.pages.page import MOST_SECTIONS
from tilewright.spaces.operators import workload

pytest.importorskip("jinja2", reason="needs the extra report")

COLOURS = {"light": "rgb(255, 255, 255)", "dark": "rgb(22, 24, 27)"}
WINDOWS = [(360, "light"), (360, "dark"), (1600, "light"), (1600, "dark")]


@pytest.fixture(scope="module")
def browser() -> Iterator[Any]:
    with chromium() as made:
        yield made


@pytest.fixture(scope="module")
def db(tmp_path_factory) -> Path:
    return tuned(tmp_path_factory.mktemp("tuned"))


@pytest.fixture(scope="module")
def report(db) -> str:
    return report_of(db)


@pytest.fixture(scope="module")
def server(tmp_path_factory) -> Iterator[Server]:
    pytest.importorskip("uvicorn", reason="needs the extra dashboard")
    made = Server(many(tmp_path_factory.mktemp("served") / "many", 3, 12))
    yield made
    made.process.kill()
    made.process.communicate()


def report_of(db: Path, *more: str) -> str:
    """The address of a report."""
    page = db.with_name("report.html")
    assert run(["report", "--db", str(db), "--out", str(page), *more]) == 0
    return page.as_uri()


def numbers(visit: Visit, column: int) -> list[float]:
    """The numbers of a column of the overview, of rows that are shown, from above."""
    return visit.page.evaluate(
        """(column) => [...document.querySelectorAll("#workloads tbody tr")].filter(
            (row) => !row.hidden).map((row) => Number(row.cells[column].dataset.sort))""",
        column,
    )


def open_all(visit: Visit) -> None:
    visit.page.evaluate("document.querySelectorAll('details').forEach((d) => (d.open = true))")


def keeps_quiet(visit: Visit) -> bool:
    assert visit.said == []
    assert visit.asked_elsewhere == []
    return True


@pytest.mark.parametrize(("width", "scheme"), WINDOWS)
def test_a_report_fits_asks_for_nothing_and_is_accessible(browser, report, width, scheme):
    with opened(browser, report, width, scheme) as visit:
        open_all(visit)
        assert visit.overflow == 0
        assert (
            visit.page.evaluate("getComputedStyle(document.body).backgroundColor")
            == (COLOURS[scheme])
        )
        if width == 360 or scheme == "dark":
            assert visit.faults() == []
        assert keeps_quiet(visit)
        assert visit.asked == [report]


def test_figures_have_as_many_points_as_the_database_has_rows(browser, report, db):
    with Database(db, create=False) as database:
        records = list(database.records())
    with opened(browser, report) as visit:
        points = visit.points()
    assert points["history"] == (len(records), len(records))
    for name, (told, drawn) in points.items():
        assert told == drawn, name


def test_the_overview_is_sorted_filtered_and_searched(browser, tmp_path):
    with opened(browser, report_of(many(tmp_path / "many", 5, 12))) as visit:
        page = visit.page
        assert len(numbers(visit, 5)) == 5
        page.fill("#search", "c=33")
        assert len(numbers(visit, 5)) == 1
        assert page.inner_text("#shown") == "1 shown"
        page.fill("#search", "no such workload")
        assert numbers(visit, 5) == []
        page.fill("#search", "")
        heading = page.locator("#workloads thead th").nth(2)
        heading.locator("button").click()
        assert heading.get_attribute("aria-sort") == "ascending"
        rising = numbers(visit, 2)
        assert rising == sorted(rising)
        heading.locator("button").press("Enter")
        assert heading.get_attribute("aria-sort") == "descending"
        assert numbers(visit, 2) == rising[::-1]
        page.select_option("#target", index=1)
        assert len(numbers(visit, 2)) == 5
        assert keeps_quiet(visit)


@pytest.mark.parametrize("width", [360, 1600])
def test_a_brush_chooses_trials_by_keyboard_and_by_pointer(browser, report, width):
    with opened(browser, report, width, "dark") as visit:
        page = visit.page
        figure = page.locator("figure[data-figure=parallel]").first
        page.locator("details.brush > summary").first.press("Enter")
        figure.locator("tbody tr").nth(47).wait_for()  # it is filled once it is open

        def state() -> tuple[str, list[list[str]], int]:
            rows = figure.locator("tbody tr").evaluate_all(
                "rows => rows.map(row => [...row.cells].map(cell => cell.textContent))"
            )
            paler = figure.locator("path.rest").get_attribute("d").count("M")
            return figure.locator("output").inner_text(), rows, paler

        said, rows, paler = whole = state()
        assert said == "48 of 48 trials chosen"
        assert (len(rows), paler) == (48, 0)
        select = figure.locator("select").nth(3)
        select.select_option(index=1)
        _, chosen, paler = state()
        least = min({row[3] for row in rows}, key=int)
        assert chosen == [row for row in rows if row[3] == least]
        assert 0 < len(chosen) == 48 - paler < 48
        box = figure.locator("rect.hit").first.bounding_box()
        page.mouse.move(box["x"] + 1, box["y"] + 4)
        page.mouse.down()
        page.mouse.move(box["x"] + 0.4 * box["width"], box["y"] + 4)
        page.mouse.up()
        _, dragged, _ = state()
        assert [row for row in chosen if row in dragged] == dragged
        assert 0 < len(dragged) < len(chosen)
        figure.get_by_role("button", name="All trials").click()
        assert state() == whole
        assert visit.overflow == 0
        assert visit.faults() == []
        assert keeps_quiet(visit)


@pytest.mark.parametrize("width", [360, 1600])
def test_the_statement_of_a_source_is_named(browser, tmp_path, width):
    work = workload("softmax", r=64, c=100)
    db = sampled(tmp_path / "cpu", work, TARGETS["avx512"])
    with opened(browser, report_of(db), width, "dark") as visit:
        visit.page.get_by_text("Source of the best").click()
        source, said = visit.page.locator("pre.source"), visit.page.locator("output.at")
        text = source.inner_text()
        lines = outline(text, re.search(r"tw_[0-9a-f]{16}", text)[0])
        for place in range(3):
            source.press("ArrowDown")
            assert said.inner_text().startswith(f"Line {place + 1}: function work")
            assert said.inner_text().endswith(lines[place].words)
        source.hover(position={"x": 20, "y": 15})
        assert said.inner_text() == "Line 1: function work"
        assert visit.overflow == 0
        assert visit.faults() == []
        assert keeps_quiet(visit)


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1600, "light")])
def test_the_layers_of_a_suite_fit_and_lead_to_their_sections(browser, tmp_path, width, scheme):
    with opened(browser, report_of(suite(tmp_path / "suite")), width, scheme) as visit:
        figure = visit.page.locator("figure[data-figure=pareto] svg")
        assert figure.get_attribute("data-points") == "2"
        visit.page.get_by_role("link", name="two layers 0").click()
        assert visit.page.url.endswith("#w2")
        assert visit.overflow == 0
        assert visit.faults() == []
        assert keeps_quiet(visit)


@pytest.mark.slow
@pytest.mark.timeout(1800)
def test_ten_thousand_workloads_are_searched(browser, tmp_path):
    with opened(browser, report_of(many(tmp_path / "many", 10_000, 1)), 360) as visit:
        assert visit.page.locator("section.workload").count() == MOST_SECTIONS
        assert len(numbers(visit, 5)) == 10_000
        visit.page.fill("#search", "c=777")
        assert visit.page.inner_text("#shown") == "11 shown"
        visit.page.fill("#search", "c=7777")
        assert visit.page.inner_text("#shown") == "1 shown"
        assert visit.overflow == 0
        assert keeps_quiet(visit)


def test_two_databases_are_compared_regressions_first(browser, tmp_path):
    old, new = (of_records(tmp_path / n, [record(1, s)]) for n, s in (("o", 1e-3), ("n", 2e-3)))
    with opened(browser, report_of(new, "--compare", str(old)), 360, "dark") as visit:
        [row] = visit.page.locator("#comparison tbody tr").all()
        assert "slower" in row.inner_text()
        assert visit.overflow == 0
        assert visit.faults() == []
        assert keeps_quiet(visit)


def test_planted_failures_of_every_kind_are_shown(browser, tmp_path):
    records = [record(n, None, kind=kind, text=f"why {kind}") for n, kind in enumerate(ErrorKind)]
    db = of_records(tmp_path / "failed", [*records, record(99, 1e-3)])
    with opened(browser, report_of(db)) as visit:
        for kind in ErrorKind:
            text = visit.page.get_by_text(f"why {kind}", exact=True)
            assert not text.is_visible()
            visit.page.get_by_text(f"1 {kind}", exact=True).click()
            assert text.is_visible()
        assert visit.points()["history"] == (len(records) + 1, len(records) + 1)
        assert keeps_quiet(visit)


def test_markup_of_a_stranger_does_nothing(browser, tmp_path):
    with opened(browser, report_of(hostile(tmp_path / "hostile")), 360) as visit:
        open_all(visit)
        assert visit.page.title().startswith("Tilewright: ")
        assert visit.overflow == 0
        assert visit.faults() == []
        assert keeps_quiet(visit)


def test_pages_look_as_they_did(browser, tmp_path):
    """``python -m tests.scheduler.report.golden`` makes them anew, if they are to change."""
    pytest.importorskip("PIL", reason="needs the extra plot")
    from tests.scheduler.report import golden

    found = dict(golden.shots(browser, tmp_path))
    assert found.keys() == {path.stem for path in golden.FOLDER.iterdir()}
    for name, picture in found.items():
        picture.save(tmp_path / f"{name}.png")
        mean, share = golden.difference(picture, golden.kept(name))
        assert mean <= golden.MEAN, (name, tmp_path)
        assert share <= golden.SHARE, (name, tmp_path)
    names = list(found)
    assert golden.difference(found[names[0]], found[names[2]])[0] > golden.MEAN


@pytest.mark.parametrize(("width", "scheme"), [(360, "dark"), (1600, "light")])
def test_a_dashboard_shows_a_result_as_it_arrives(browser, server, width, scheme):
    with opened(browser, server.address.geturl(), width, scheme) as visit:
        page = visit.page
        before = visit.points()["history"]
        page.fill("#search", "c=32")
        page.locator("details.failure").first.locator("summary").click()
        with Database(server.db) as database:
            known, target = database.pairs()[0]
            database.record(record(1000 + width, 1e-6, known, target=target))
        grown = before[0] + 1
        page.wait_for_selector(f"section.workload svg[data-points='{grown}']", timeout=60_000)
        assert visit.points()["history"] == (grown, grown)
        assert page.input_value("#search") == "c=32"
        assert page.inner_text("#shown") == "1 shown"
        assert page.inner_text("#news") == "Live."
        assert page.evaluate("document.querySelector('details.failure').open")
        assert visit.overflow == 0
        assert visit.faults() == []
        assert keeps_quiet(visit)


def test_a_dashboard_that_ends_leaves_its_page(browser, server):
    """The last one that asks the server."""
    with opened(browser, server.address.geturl()) as visit:
        server.process.kill()
        visit.page.get_by_text("Nobody answers; this page asks again.").wait_for(timeout=60_000)
        assert visit.points()["history"][0] > 0
