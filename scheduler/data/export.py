"""Exports of a database as tables, each with its data card."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.scheduler.data.card import Census, data_card
from tilewright.scheduler.data.formats import check_parquet, write_csv, write_parquet
from tilewright.scheduler.data.selection import EVERYTHING, Selection
from tilewright.scheduler.data.table import Table, in_order
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.files import check_place, is_stream, output_file
from tilewright.spaces.validation.nearest import suggestion

if TYPE_CHECKING:
    from tilewright.measure.database import Database

WRITERS = {"csv": write_csv, "parquet": write_parquet}
LIBRARIES = {"csv": ("numpy",), "parquet": ("numpy", "pyarrow")}


def export_table(
    database: Database,
    path: Path,
    format: str,
    source: str,
    features: bool = False,
    selection: Selection = EVERYTHING,
    sort: str | None = None,
    limit: int | None = None,
) -> tuple[int, Path | None]:
    """Write attempts of ``database`` to ``path`` as ``csv`` or ``parquet``, and beside it a card
    that names ``source``; how many rows, and where the card is. A stream gets none.

    The rows are those of ``selection``, by the values of the column ``sort`` if one is named. At
    most ``limit`` are written: the first ones in that order, or else the newest.

    See ``scheduler.data.table`` and :func:`spaces.validation.files.output_file`.
    :class:`InputError` where a file cannot be written, or pyarrow is missing.
    """
    card = None
    if not is_stream(path):
        check_place(path, "an export")  # before the work is done
        card = path.with_name(f"{path.name}.md")
        check_place(card, "a data card")
    if format == "parquet":
        check_parquet()
    if limit is not None and sort is None:
        selection = selection.newest(database, limit)
    table, census = Table(database, features=features, selection=selection), Census()
    rows = table.chunks()
    if sort is not None:
        rows = in_order(rows, _checked_column(sort, table), limit)
    count = WRITERS[format](path, table.columns, census.counted(rows))
    if card:
        versions = {name: metadata.version(name) for name in LIBRARIES[format]}
        text = data_card(path.name, source, table.columns, census, versions)
        with output_file(card, "a data card") as file:
            file.write(text.encode())
    return count, card


def _checked_column(name: str, table: Table) -> str:
    """Return ``name``, if it is that of a column; :class:`InputError` if it is none."""
    names = [column.name for column in table.columns]
    if name not in names:
        hint = suggestion(name, names).strip() or "allowed: those of its first line, as latency_s"
        raise InputError(f"the table has no column {shown(name)}; {hint}")
    return name
