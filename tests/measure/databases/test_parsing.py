"""Large exports, which processes of their own read: as if one had read them line by line."""

from __future__ import annotations

import subprocess
import sys
from itertools import chain, islice
from pathlib import Path

import pytest

from experiments.database.filling import attempts, shape
from tilewright.measure.database import Database
from tilewright.measure.records.jsonl import write_lines
from tilewright.measure.tables import parsing
from tilewright.spaces.errors import InputError

LINES = 2600  # three chunks


@pytest.fixture(autouse=True)
def _two_processes(monkeypatch):
    monkeypatch.setattr(parsing, "BYTES_PER_PROCESS", 1)
    monkeypatch.setattr(parsing, "usable_cpus", lambda: 2)


@pytest.fixture(scope="module")
def records():
    return list(islice(chain(*(attempts(shape(number)) for number in range(3))), LINES))


@pytest.fixture
def export(tmp_path, records) -> Path:
    path = tmp_path / "large.jsonl"
    write_lines(path, [], records)
    return path


def test_all_is_imported_in_the_order_of_the_file_but_for_a_torn_end(tmp_path, export, records):
    export.write_bytes(export.read_bytes()[:-100])
    said: list[str] = []
    with Database(tmp_path / "imported.db") as database:
        assert database.import_jsonl(export, said.append) == LINES - 1
        assert list(database.records()) == records[:-1]
    assert said == [f"line {LINES + 1} of {export} is torn and was left out"]


def test_what_stands_before_a_malformed_line_is_imported(tmp_path, export, records):
    lines = export.read_text().splitlines(keepends=True)
    lines[1500] = lines[1500].replace('"clock"', '"watch"')
    export.write_text("".join(lines))
    with Database(tmp_path / "imported.db") as database:
        with pytest.raises(InputError, match=r"line 1501 of .* is malformed: .*'clock' is missing"):
            database.import_jsonl(export, pytest.fail)
        assert list(database.records()) == records[:1499]


KILLED = """
import os, signal
print('{"pairs": []}\\n{"pairs": [', end="", flush=True)
os.kill(os.getpid(), signal.SIGKILL)
"""


def test_a_process_that_is_killed_while_it_speaks_ends_the_import(export, monkeypatch):
    start = subprocess.Popen
    monkeypatch.setattr(
        "tilewright.measure.tables.parsing.subprocess.Popen",
        lambda _, **options: start([sys.executable, "-c", KILLED], **options),
    )
    with parsing._Reader(export, 0, 2) as reader:
        chunks = reader.chunks()
        assert next(chunks) == parsing.Chunk()
        with pytest.raises(RuntimeError, match="ended with exit code -9"):
            next(chunks)


def test_a_process_that_fails_ends_the_import(export):
    with (
        parsing._Reader(export, 0, 0) as reader,
        pytest.raises(RuntimeError, match="ended with exit code 1"),
    ):
        list(reader.chunks())
