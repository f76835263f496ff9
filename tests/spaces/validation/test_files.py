"""Files are there as a whole or not at all, with the rights of any new file."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from tilewright.spaces.validation import files
from tilewright.spaces.validation.files import open_now, whole_file, write_whole

WRITER = """
import sys, time
from pathlib import Path
from tilewright.spaces.validation.files import whole_file
with whole_file(Path(sys.argv[1])) as file:
    file.write(b"half")
    file.flush()
    print("written", flush=True)
    time.sleep(600)
"""


@pytest.fixture
def named(monkeypatch):
    """As on file systems on which no file is without a name."""
    monkeypatch.setattr(files.os, "O_TMPFILE", os.O_CREAT | os.O_DIRECTORY)


def test_a_writer_that_is_killed_leaves_nothing(tmp_path):
    path = tmp_path / "log.jsonl"
    path.write_text("old")
    with subprocess.Popen(
        [sys.executable, "-c", WRITER, path], stdout=subprocess.PIPE, text=True
    ) as writer:
        assert writer.stdout.readline() == "written\n"
        writer.send_signal(signal.SIGKILL)
    assert os.listdir(tmp_path) == ["log.jsonl"]
    assert path.read_text() == "old"


def test_a_file_is_on_disk_before_it_has_its_name_and_its_name_before_it_is_done(
    tmp_path, monkeypatch
):
    """After a power cut, a name with an empty file is what another order leaves."""
    done, sync, replace = [], os.fsync, os.replace

    def synced(descriptor):
        done.append("folder" if stat.S_ISDIR(os.fstat(descriptor).st_mode) else "content")
        sync(descriptor)

    def named_at_last(old, new):
        done.append("name")
        replace(old, new)

    monkeypatch.setattr(files.os, "fsync", synced)
    monkeypatch.setattr(files.os, "replace", named_at_last)
    write_whole(tmp_path / "log.jsonl", b"new")
    assert done == ["content", "name", "folder"]


def fails(path: Path) -> None:
    with whole_file(path) as file:
        file.write(b"half")
        raise KeyboardInterrupt


def check(folder: Path) -> None:
    path = folder / "log.jsonl"
    before = os.umask(0o027)
    try:
        write_whole(path, b"old")
        write_whole(path, b"new")
        write_whole(folder / "program", b"", executable=True)
    finally:
        os.umask(before)
    assert path.read_bytes() == b"new"
    assert path.stat().st_mode & 0o777 == 0o640
    assert (folder / "program").stat().st_mode & 0o777 == 0o750
    with pytest.raises(KeyboardInterrupt):
        fails(path)
    assert path.read_bytes() == b"new"
    assert sorted(os.listdir(folder)) == ["log.jsonl", "program"]


def test_a_file_replaces_another_when_it_is_whole(tmp_path):
    check(tmp_path)


@pytest.mark.usefixtures("named")
def test_so_it_does_where_files_need_names(tmp_path):
    check(tmp_path)


@pytest.mark.parametrize("folder", ["missing", "file"])
def test_a_folder_that_is_none_is_an_error_of_the_system(tmp_path, folder):
    (tmp_path / "file").touch()
    with pytest.raises(OSError, match=folder):
        write_whole(tmp_path / folder / "log.jsonl", b"")


def test_a_link_stays_one(tmp_path):
    (tmp_path / "link").symlink_to("file")
    write_whole(tmp_path / "link", b"new")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "file").read_bytes() == b"new"


def test_a_pipe_is_read_if_somebody_writes_to_it_and_empty_if_nobody_does(tmp_path):
    path = tmp_path / "pipe"
    os.mkfifo(path)
    with open_now(path) as file:
        assert file.read(9) == b""
    writer = os.open(path, os.O_RDWR)
    with open_now(path) as file:
        late = threading.Timer(0.2, lambda: (os.write(writer, b"late"), os.close(writer)))
        late.start()
        assert file.read(9) == b"late"
    late.join()
    path.with_name("plain").write_bytes(b"text")
    with open_now(path.with_name("plain")) as file:
        assert file.read() == b"text"
