"""Exports of a database as tables, each with its data card."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.scheduler.data.card import Census, data_card
from tilewright.scheduler.data.formats import check_parquet, write_csv, write_parquet
from tilewright.scheduler.data.table import Table
from tilewright.spaces.validation.files import check_place, is_stream, output_file

if TYPE_CHECKING:
    from tilewright.measure.database import Database

WRITERS = {"csv": write_csv, "parquet": write_parquet}
LIBRARIES = {"csv": ("numpy",), "parquet": ("numpy", "pyarrow")}


def export_table(
    database: Database, path: Path, format: str, source: str, features: bool = False
) -> tuple[int, Path | None]:
    """Write all attempts of ``database`` to ``path`` as ``csv`` or ``parquet``, and beside it a
    card that names ``source``; how many rows, and where the card is. A stream gets none.

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
    table, census = Table(database, features=features), Census()
    count = WRITERS[format](path, table.columns, census.counted(table.chunks()))
    if card:
        versions = {name: metadata.version(name) for name in LIBRARIES[format]}
        text = data_card(path.name, source, table.columns, census, versions)
        with output_file(card, "a data card") as file:
            file.write(text.encode())
    return count, card
