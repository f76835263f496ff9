"""Export a database as a folder laid out as a data set of the Hugging Face hub: a card with its
front matter, and a Parquet file for each split."""

from __future__ import annotations

from importlib import metadata
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.scheduler.data.card import Census, data_card
from tilewright.scheduler.data.export import LIBRARIES
from tilewright.scheduler.data.formats import check_parquet, write_parquet
from tilewright.scheduler.data.selection import EVERYTHING, Selection
from tilewright.scheduler.data.table import PARTS, Table
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.files import check_place, make_folder, output_file

if TYPE_CHECKING:
    from collections.abc import Sequence

    from tilewright.measure.database import Database

SIZES = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"), (1_000_000, "100K<n<1M"))
"""The hub's names for numbers of rows below these."""
MORE = "1M<n<10M"
SPLITS = """\
## Splits

`test` has a fifth of the workloads, by the order of the SHA-256 of their names, so that none is in
both; a lone workload is all `train`."""


def export_dataset(
    database: Database,
    folder: Path,
    source: str,
    features: bool = False,
    selection: Selection = EVERYTHING,
) -> int:
    """Write the attempts of a selection into ``folder``, which is made if it is missing; return how
    many there are. The card names ``source``, the database.

    Raises :class:`InputError` where there is none, a file cannot be written, or pyarrow is missing.
    """
    check_parquet()
    make_folder(folder)
    check_place(folder / "README.md", "a data card")
    table, census, written = Table(database, features=features, selection=selection), Census(), []
    make_folder(folder / "data")
    for part in PARTS:
        if any(True for _ in table.chunks(part)):
            rows = census.counted(table.chunks(part))
            write_parquet(folder / "data" / f"{part}-00000-of-00001.parquet", table.columns, rows)
            written.append(part)
    if not written:
        raise InputError("the database has no attempt that these options select")
    versions = {name: metadata.version(name) for name in LIBRARIES["parquet"]}
    card = data_card(folder.resolve().name, source, table.columns, census, versions)
    text = "\n".join([*_front(census.rows, written), "", card, SPLITS, ""])
    with output_file(folder / "README.md", "a data card") as file:
        file.write(text.encode())
    return census.rows


def _front(rows: int, parts: Sequence[str]) -> list[str]:
    """Return the lines that the hub reads: what the data is about, and where its splits are."""
    size = next((name for most, name in SIZES if rows < most), MORE)
    return [
        "---",
        "pretty_name: Measured schedules of kernels",
        "license: unknown",
        "tags:",
        *(f"- {tag}" for tag in ("auto-tuning", "kernels", "performance", "tabular")),
        "size_categories:",
        f"- {size}",
        "configs:",
        "- config_name: default",
        "  data_files:",
        *(f"  - split: {part}\n    path: data/{part}-*.parquet" for part in parts),
        "---",
    ]
