"""Tables as files: CSV, which needs no library, and Parquet, which keeps types and units."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from tilewright.scheduler.data.columns import Column, Kind
from tilewright.scheduler.data.table import Chunk
from tilewright.scheduler.extras import extra
from tilewright.spaces.validation.files import output_file

COMPRESSION = "zstd"
FORMULA = ("=", "+", "-", "@", "\t", "\r")
"""Characters that spreadsheets take for the beginning of a formula."""


def write_csv(path: Path, columns: Sequence[Column], chunks: Iterable[Chunk]) -> int:
    """Write UTF-8 lines with a header to ``path``; how many rows. Floats keep every bit, flags are
    ``true`` and ``false``, what is missing is empty, and a text that spreadsheets would take for a
    formula has a quote before it. The file is one of
    :func:`spaces.validation.files.output_file`."""
    count = 0
    with output_file(path, "an export") as file:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(_text(column.name) for column in columns)
        for chunk in chunks:
            for row in zip(*(chunk[column.name] for column in columns), strict=True):
                writer.writerow(map(_text, row))
                count += 1
        text.flush()
        text.detach()
    return count


def write_parquet(path: Path, columns: Sequence[Column], chunks: Iterable[Chunk]) -> int:
    """Write a Parquet file to ``path``, as :func:`write_csv` does; how many rows.

    Each field's metadata has its unit and meaning. :class:`InputError` without pyarrow.
    """
    arrow = check_parquet()
    parquet = extra("pyarrow.parquet", "data", "--format parquet")
    types = {
        Kind.INTEGER: arrow.int64(),
        Kind.NUMBER: arrow.float64(),
        Kind.TEXT: arrow.string(),
        Kind.FLAG: arrow.bool_(),
    }
    schema = arrow.schema(
        [
            arrow.field(c.name, types[c.kind], metadata={"unit": c.unit, "meaning": c.meaning})
            for c in columns
        ]
    )

    count = 0
    with (
        output_file(path, "an export") as file,
        parquet.ParquetWriter(file, schema, compression=COMPRESSION) as writer,
    ):
        for chunk in chunks:
            piece = arrow.table({c.name: chunk[c.name] for c in columns}, schema=schema)
            writer.write_table(piece)
            count += piece.num_rows
    return count


def check_parquet() -> Any:
    """Raise :class:`InputError` where pyarrow is missing."""
    return extra("pyarrow", "data", "--format parquet")


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    if isinstance(value, str):
        return f"'{value}" if value.startswith(FORMULA) else value
    return repr(value) if isinstance(value, float) else str(value)
