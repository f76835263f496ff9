"""Databases where nothing can be written: container images, read-only mounts, other users."""

from __future__ import annotations

import ctypes
import shlex
import shutil
import sqlite3
import subprocess
import sys
from contextlib import closing
from pathlib import Path

import pytest

from tilewright.measure.database import Database
from tilewright.measure.testing.made_up import attempt, failed, measured

GOLDEN = Path(__file__).parents[1] / "golden"
PR_CAPBSET_DROP, CAP_DAC_OVERRIDE = 24, 1

READ_ALL = """
import sys
from tilewright.measure.database import Database
from tilewright.scheduler.query import query
from tilewright.spaces.operators import workload
from tilewright.measure.testing.made_up import TARGET, WORKLOAD

path, exported = sys.argv[1:]
with Database(path, create=False) as database:
    records = list(database.records())
    assert database.best(WORKLOAD, TARGET).schedule == records[0].schedule
    assert database.trials(WORKLOAD, TARGET) == len(records)
    assert list(database.nearest(workload("matmul", m=1, n=2, k=3), TARGET))
    assert len(database.summaries()) == 1
    assert database.export_jsonl(exported) == len(records)
query(WORKLOAD, TARGET, path)
print(len(records))
"""
OPEN = """
import sys
from tilewright.measure.database import Database
from tilewright.spaces.errors import InputError
try:
    Database(sys.argv[1], create=sys.argv[2] == "True").close()
except InputError as error:
    print(error)
"""


def without_override() -> None:
    """Permissions count for root, too, in programs that start from here."""
    ctypes.CDLL(None).prctl(PR_CAPBSET_DROP, CAP_DAC_OVERRIDE, 0, 0, 0)


def run(program: str, *arguments: object) -> str:
    command = [sys.executable, "-c", program, *map(str, arguments)]
    return subprocess.run(
        command, preexec_fn=without_override, capture_output=True, text=True, check=True
    ).stdout.strip()


@pytest.fixture
def folder(tmp_path):
    folder = tmp_path / "shared"
    folder.mkdir()
    yield folder
    folder.chmod(0o755)


@pytest.fixture
def path(folder):
    with Database(folder / "tuning.db") as database:
        database.record_all([attempt(measured(1, 1.0)), attempt(failed(2))])
    return folder / "tuning.db"


def seal(folder: Path) -> None:
    for file in folder.iterdir():
        file.chmod(0o444)
    folder.chmod(0o555)


def test_everything_can_be_read(path, tmp_path):
    seal(path.parent)
    before = sorted(path.parent.iterdir())
    assert run(READ_ALL, path, tmp_path / "all.jsonl") == "2"
    assert sorted(path.parent.iterdir()) == before


def test_a_database_on_a_read_only_mount_can_be_read_and_says_so_to_who_writes(path, tmp_path):
    mounted = tmp_path / "mounted"
    mounted.mkdir()
    mount = f"mount -t tmpfs none {mounted} && cp {path} {mounted} && mount -o remount,ro {mounted}"
    place = mounted / path.name
    orders = [(READ_ALL, place, tmp_path / "all.jsonl"), (OPEN, place, True)]
    calls = [shlex.join([sys.executable, "-c", *map(str, words)]) for words in orders]
    command = ["unshare", "--map-root-user", "--mount", "sh", "-ec", "\n".join([mount, *calls])]
    done = subprocess.run(command, capture_output=True, text=True, check=True)
    read, written = done.stdout.splitlines()
    assert read == "2"
    assert f"database {place} cannot be used: " in written


def test_what_a_living_writer_wrote_last_is_seen(path, tmp_path):
    with Database(path) as writer:
        writer.record(attempt(measured(3, 2.0)))
        seal(path.parent)
        assert run(READ_ALL, path, tmp_path / "all.jsonl") == "3"


def test_what_a_killed_writer_left_in_its_log_is_not_passed_over(path, tmp_path):
    with closing(sqlite3.connect(path)) as writer:
        writer.execute("UPDATE measurements SET doubted = 1")
        writer.commit()
        copy = tmp_path / "copy"
        copy.mkdir()
        for name in ("tuning.db", "tuning.db-wal"):
            shutil.copy(path.parent / name, copy)
    seal(copy)
    assert "tuning.db-wal holds what was written last" in run(OPEN, copy / "tuning.db", False)
    copy.chmod(0o755)


def test_who_wants_to_write_is_told_at_once(path):
    seal(path.parent)
    assert "cannot be used: " in run(OPEN, path, True)


def test_an_earlier_schema_is_said_in_a_sentence(folder):
    with sqlite3.connect(folder / "old.db") as connection:
        connection.executescript((GOLDEN / "schema_0001.sql").read_text())
    seal(folder)
    said = run(OPEN, folder / "old.db", False)
    assert "has schema '0001', and cannot be brought to '0008' where nothing can be written" in said
