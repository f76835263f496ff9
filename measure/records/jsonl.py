"""Runs and records in a text file: a header line that names the format, then a JSON object a line.

The field ``type`` says which of the two a line is; runs come first. Floats keep every bit, so
export and import are lossless. A file whose writer was killed ends in a torn line: it is reported
and left out, and every line before it counts. Any other line that is neither makes the file
malformed. A file may be compressed with gzip, then as a whole. Files of earlier formats are still
read: 1 had records only, 2 of the configuration of a run its budget, and 3 had earlier names of
decisions.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Generator, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from pathlib import Path
from typing import Any, NoReturn

from tilewright.measure.records.decompressing import decompressed, lines
from tilewright.measure.records.record import Record, record_from_json
from tilewright.measure.records.run import Run, run_from_json
from tilewright.measure.tables.earlier import present_form, present_names, present_run
from tilewright.spaces.errors import InputError
from tilewright.spaces.validation.canonical import canonical_json
from tilewright.spaces.validation.files import output_file

FORMAT = "tilewright-measurements"
VERSION = 4
MOST_NESTED = 100
"""Values in values that are read: nothing of ours comes near, and what reads them calls itself."""


def write_lines(path: Path, runs: Iterable[Run], records: Iterable[Record]) -> int:
    """Write runs and records to ``path``, see :func:`spaces.validation.files.output_file`; how many
    records."""
    count = 0
    with output_file(path, "an export") as file:
        file.write(_line({"format": FORMAT, "version": VERSION}))
        for run in runs:
            file.write(_line({"type": "run", **run.to_json()}))
        for record in records:
            file.write(_line({"type": "measurement", **record.to_json()}))
            count += 1
    return count


def read_lines(path: Path, report: Callable[[str], None]) -> Generator[tuple[int, Run | Record]]:
    """Yield the runs and records of a file with the numbers of their lines.

    ``report`` is told in words of a torn last line.

    Raises :class:`InputError` for a file that cannot be read, that is no such file or is of a
    newer version, and at the first malformed line.
    """
    with numbered_lines(path) as (version, lines):
        for number, line in lines:
            part = read_line(path, number, line, version)
            if part is None:
                report(f"line {number} of {path} is torn and was left out")
                return
            yield number, part


@contextmanager
def numbered_lines(path: Path) -> Iterator[tuple[int, Iterator[tuple[int, bytes]]]]:
    """Give the version of a file's format, and its lines after the first with their numbers; raises
    as :func:`read_lines` does, but for what the lines hold."""
    with decompressed(path) as file:
        version = _check_header(path, file.readline(1 << 12))
        yield version, lines(path, file, 2)


def read_line(path: Path, number: int, line: bytes, version: int) -> Run | Record | None:
    """Read one line of the file at ``path``: None if it is torn, :class:`InputError` if it is
    malformed.
    """
    try:
        data = parse_json(line)
    except InputError as error:
        if line.endswith(b"\n"):
            raise _malformed(path, number, error) from None
        return None
    try:
        return _read_line(data, version)
    except InputError as error:
        raise _malformed(path, number, error) from None


def _line(data: object) -> bytes:
    return canonical_json(data).encode() + b"\n"


def _read_line(data: Any, version: int) -> Run | Record:
    if not isinstance(data, dict):
        raise InputError(f"expected a JSON object, got {data!r:.80}")
    if version == 1:
        return record_from_json(present_names(present_form(data)))
    kind = data.pop("type", None)
    if kind not in ("run", "measurement"):
        raise InputError(f"type={kind!r:.80} is not allowed; allowed: run, measurement")
    if kind == "measurement":
        return record_from_json(data if version == VERSION else present_names(data))
    return run_from_json(present_run(data) if version == 2 else data)


def parse_json(text: str | bytes) -> Any:
    """Return the JSON value that ``text`` holds; :class:`InputError` if it is none, NaN included,
    or nests too deep."""
    try:
        text = text if isinstance(text, str) else str(text, "utf-8")
        value = _DECODER.decode(text)
    except (ValueError, RecursionError) as error:
        raise InputError(f"not JSON: {error}") from None
    if text.count("[") + text.count("{") > MOST_NESTED and _nests_deep(value):
        raise InputError(f"values lie more than {MOST_NESTED} deep in each other")
    return value


def _nests_deep(value: Any) -> bool:
    level = [value]
    for _ in range(MOST_NESTED):
        level = list(chain.from_iterable(map(_inside, level)))
        if not level:
            return False
    return True


def _inside(value: Any) -> Iterable[Any]:
    """Return the values in a JSON value."""
    if isinstance(value, dict):
        return value.values()
    return value if isinstance(value, list) else ()


def _malformed(path: Path, number: int, error: InputError) -> InputError:
    return InputError(f"line {number} of {path} is malformed: {error}")


def _refuse(constant: str) -> NoReturn:
    raise ValueError(f"{constant} is not a JSON value")


_DECODER = json.JSONDecoder(parse_constant=_refuse)


def _check_header(path: Path, line: bytes) -> int:
    """Return the version of the format."""
    try:
        header = parse_json(line)
    except InputError:
        header = None
    if not isinstance(header, dict) or header.get("format") != FORMAT:
        raise InputError(f"{path} is not an export of tilewright: its first line names no format")
    version = header.get("version")
    if type(version) is not int or not 1 <= version <= VERSION:
        raise InputError(f"{path} has format version {version!r:.80}; allowed: up to {VERSION}")
    return version
