"""``tilewright report``."""

from __future__ import annotations

import json
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from tilewright.scheduler.cli import completing
from tilewright.scheduler.cli.options import DatabaseName, ReportedWorkloads
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.files import STANDARD_OUTPUT, is_stream, output_file

if TYPE_CHECKING:
    from tilewright.scheduler.report.comparing import Comparison
    from tilewright.scheduler.report.figure import Picture
    from tilewright.scheduler.report.material import Material

PAGE = Path("report.html")


class ReportFormat(StrEnum):
    """The form of a report: a page, one picture, or figures as data."""

    HTML = "html"
    SVG = "svg"
    PNG = "png"
    JSON = "json"


ReportFile = Annotated[
    Path | None,
    typer.Option(
        "--out",
        metavar="FILE",
        help="The file to write, or - for standard output.",
        show_default="report.html for a page, else standard output",
    ),
]
OtherDatabase = Annotated[
    str | None,
    typer.Option("--compare", metavar="DB", help="Compare with the best of this database."),
]
FormatOption = Annotated[
    ReportFormat,
    typer.Option("--format", help="html: a page; svg, png: one figure; json: figures as data."),
]
OnlyFigure = Annotated[
    str | None,
    typer.Option(
        "--only",
        metavar="FIGURE",
        help="One figure of one workload, such as history or roofline.",
        autocompletion=completing.figures,
    ),
]


def report_command(
    workloads: ReportedWorkloads = None,
    db: DatabaseName = "tuning.db",
    out: ReportFile = None,
    compare: OtherDatabase = None,
    format: FormatOption = ReportFormat.HTML,
    only: OnlyFigure = None,
) -> None:
    """Write what the database knows as one page that loads nothing.

    The page shows each workload's best, how the search went, what failed and why, and which
    decisions mattered. It needs Jinja2, and a PNG resvg: pip install 'tilewright[report]'.

    \b
    Examples:
      tilewright report --out report.html
      tilewright report softmax r=64 c=100 --format svg --only history --out history.svg
      tilewright report --db new.db --compare old.db
    """
    from tilewright.measure.database import Database
    from tilewright.scheduler.report.material import read_materials

    _check_figure(only, format, compare is not None)
    is_page = format is ReportFormat.HTML
    place = out or (PAGE if is_page else STANDARD_OUTPUT)
    with output_file(place, "a report") as file:  # told before the work if it cannot be written
        with Database(db, create=False) as database:
            materials = read_materials(database, workloads or ())
        comparison = None if compare is None else _compared(materials, compare, bool(workloads))
        about = (materials, comparison, format, only)
        file.write(_page(materials, db, comparison, compare) if is_page else _content(*about))
    if not is_stream(place):
        print(f"report written to {place}")


def _check_figure(only: str | None, format: ReportFormat, compares: bool) -> None:
    """Raise :class:`InputError` unless the figure that is asked for is there, in this format."""
    from tilewright.scheduler.report.comparing import RATIOS
    from tilewright.scheduler.report.figures import FIGURES, check_figure
    from tilewright.scheduler.report.jobs import WHOLE

    known = (RATIOS,) if compares else (*FIGURES, *WHOLE)
    if only is not None:
        check_figure(only, known)
    if format is ReportFormat.HTML and only is not None:
        raise InputError("--only names a single figure; allowed: --format svg, png or json")
    if format in (ReportFormat.SVG, ReportFormat.PNG) and only is None:
        raise InputError(
            f"--format {format} needs the name of a figure; allowed: --only {known[0]}"
        )


def _compared(materials: list[Material], db: str, named: bool) -> Comparison:
    """Return how the best of these materials compare with those of another database: with all that
    it has, unless workloads were ``named``."""
    from tilewright.measure.database import Database
    from tilewright.scheduler.report.comparing import compared
    from tilewright.scheduler.report.material import read_materials

    with Database(db, create=False) as database:
        others = read_materials(database)
    keys = {material.workload.key for material in materials}
    return compared(materials, [m for m in others if not named or m.workload.key in keys])


def _page(
    materials: list[Material], db: str, comparison: Comparison | None, other: str | None
) -> bytes:
    from tilewright.scheduler.report.pages.page import check_library, report_page

    check_library()
    page = report_page(materials, db, comparison, other or "")
    return page.encode(errors="backslashreplace")


def _content(
    materials: list[Material],
    comparison: Comparison | None,
    format: ReportFormat,
    only: str | None,
) -> bytes:
    """Return a picture, or figures as JSON: of the comparison if there is one."""
    from tilewright.scheduler.report.comparing import ratios

    if comparison is None:
        return _figures(materials, format, only)
    if format is not ReportFormat.JSON:
        return _drawn(ratios(comparison), format)
    told = comparison.to_json() if only is None else ratios(comparison).to_json()
    return json.dumps(told).encode()


def _drawn(figure: Picture, format: ReportFormat) -> bytes:
    return figure.png() if format is ReportFormat.PNG else figure.svg().encode()


def _figures(materials: list[Material], format: ReportFormat, only: str | None) -> bytes:
    """Return one picture, or figures as JSON."""
    from tilewright.scheduler.report.figures import FIGURES
    from tilewright.scheduler.report.jobs import WHOLE

    if format is not ReportFormat.JSON:
        assert only is not None
        return _drawn(_picture(materials, only), format)
    if only in WHOLE:
        return json.dumps([{"figures": [WHOLE[only](materials).to_json()]}]).encode()
    made = FIGURES if only is None else {only: FIGURES[only]}
    told = [
        {
            "workload": material.workload.to_json(),
            "target": material.target.to_json(),
            "figures": [make(material).to_json() for make in made.values()],
        }
        for material in materials
    ]
    return json.dumps(told).encode()


def _picture(materials: list[Material], name: str) -> Picture:
    from tilewright.scheduler.report.figures import FIGURES
    from tilewright.scheduler.report.jobs import WHOLE

    if name in WHOLE:
        return WHOLE[name](materials)
    if len(materials) > 1:
        raise InputError(
            f"a picture is of one workload and target, and {len(materials)} are there; "
            "allowed: name one"
        )
    return FIGURES[name](materials[0])
