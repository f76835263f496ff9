"""Tables as files: CSV, which needs no library, and Parquet, which keeps types and units."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from typing import IO, Any

from scheduler.data.columns import Column, Kind
from scheduler.data.table import Chunk
from scheduler.extras import extra
from spaces.errors import InputError
from spaces.validation.files import whole_file

COMPRESSION = "zstd"


def write_csv(path: Path, columns: Sequence[Column], chunks: Iterable[Chunk]) -> int:
    """Write UTF-8 lines with a header to ``path``, which appears when it is complete; how many
    rows. Floats keep every bit, flags are ``true`` and ``false``, what is missing is empty."""

    def write(file: IO[bytes]) -> int:
        text = io.TextIOWrapper(file, encoding="utf-8", newline="")
        writer = csv.writer(text, lineterminator="\n")
        writer.writerow(column.name for column in columns)
        count = 0
        for chunk in chunks:
            for row in zip(*(chunk[column.name] for column in columns), strict=True):
                writer.writerow(map(_text, row))
                count += 1
        text.flush()
        text.detach()
        return count

    return _written(path, write)


def write_parquet(path: Path, columns: Sequence[Column], chunks: Iterable[Chunk]) -> int:
    """Write a Parquet file to ``path``, which appears when it is complete; how many rows.

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

    def write(file: IO[bytes]) -> int:
        count = 0
        with parquet.ParquetWriter(file, schema, compression=COMPRESSION) as writer:
            for chunk in chunks:
                piece = arrow.table({c.name: chunk[c.name] for c in columns}, schema=schema)
                writer.write_table(piece)
                count += piece.num_rows
        return count

    return _written(path, write)


def check_parquet() -> Any:
    """pyarrow; :class:`InputError` where it is missing."""
    return extra("pyarrow", "data", "--format parquet")


def _written(path: Path, write: Callable[[IO[bytes]], int]) -> int:
    try:
        with whole_file(path) as file:
            return write(file)
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error


def _text(value: Any) -> str:
    if value is None:
        return ""
    if isinstance(value, bool):
        return "true" if value else "false"
    return repr(value) if isinstance(value, float) else str(value)
