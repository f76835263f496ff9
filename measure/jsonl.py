"""Records in a text file: a header line that names the format, then one JSON object a line.

Floats keep every bit, so export and import are lossless. A file whose writer was killed ends in
a torn line: it is reported and left out, and every line before it counts. Any other line that
is no record makes the file malformed.
"""

from __future__ import annotations

import json
import os
import tempfile
from collections.abc import Callable, Generator, Iterable
from pathlib import Path
from typing import Any, NoReturn

from measure.record import Record, record_from_json
from spaces.canonical import canonical_json
from spaces.errors import InputError

FORMAT = "tilewright-measurements"
VERSION = 1


def write_records(path: Path, records: Iterable[Record]) -> int:
    """Write records to ``path``, which appears when it is complete; their number."""
    count = 0
    try:
        with tempfile.NamedTemporaryFile(
            "w", dir=path.parent, prefix=f".{path.name}.", delete=False
        ) as file:
            try:
                file.write(canonical_json({"format": FORMAT, "version": VERSION}) + "\n")
                for record in records:
                    file.write(canonical_json(record.to_json()) + "\n")
                    count += 1
                file.close()
                os.replace(file.name, path)
            except BaseException:
                os.unlink(file.name)
                raise
    except OSError as error:
        raise InputError(f"cannot write {path}: {error.strerror}") from error
    return count


def read_records(path: Path, report: Callable[[str], None]) -> Generator[Record]:
    """The records of a file; ``report`` is told in words of a torn last line.

    Raises :class:`InputError` for a file that cannot be read, that is no such file or is of a
    newer version, and at the first malformed line.
    """
    try:
        with path.open("rb") as file:
            _check_header(path, file.readline(1 << 12))
            for number, line in enumerate(file, start=2):
                try:
                    data = parse_json(line)
                except InputError as error:
                    if line.endswith(b"\n"):
                        raise _malformed(path, number, error) from None
                    report(f"line {number} of {path} is torn and was left out")
                    return
                try:
                    yield record_from_json(data)
                except InputError as error:
                    raise _malformed(path, number, error) from None
    except OSError as error:
        raise InputError(f"cannot read {path}: {error.strerror}") from error


def parse_json(text: str | bytes) -> Any:
    """The JSON value that ``text`` holds; :class:`InputError` if it is none, NaN included."""
    try:
        return json.loads(text, parse_constant=_refuse)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None


def _malformed(path: Path, number: int, error: InputError) -> InputError:
    return InputError(f"line {number} of {path} is malformed: {error}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


def _check_header(path: Path, line: bytes) -> None:
    try:
        header = parse_json(line)
    except InputError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{path} is not an export of tilewright: its first line names no format")
    if header.get("version") != VERSION:
        raise InputError(
            f"{path} has format version {header.get('version')!r}; allowed: up to {VERSION}"
        )
