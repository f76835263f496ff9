"""Files of the cache: made once, never believed without a look, made again where damaged."""

import os
import stat

import pytest

from tilewright.measure.host import cache
from tilewright.measure.host.cache import SEAL_BYTES, CachedFile
from tilewright.spaces.errors import InputError

CONTENT = b"any\0content" * 100


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tilewright"


class Maker:
    """Makes :data:`CONTENT` and counts how often."""

    def __init__(self):
        self.calls = 0

    def __call__(self):
        self.calls += 1
        return CONTENT


def test_a_file_is_made_once():
    make, file = Maker(), CachedFile("things", "one")
    assert file.read() is None
    assert [file.content(make) for _ in range(3)] == [CONTENT] * 3
    assert make.calls == 1
    assert file.read() == CONTENT


def damages():
    sealed = len(CONTENT) + SEAL_BYTES
    yield "empty", lambda data: b""
    for size in (1, SEAL_BYTES, len(CONTENT), sealed // 2, sealed - 1):
        yield f"cut to {size}", lambda data, size=size: data[:size]
    for at in (0, len(CONTENT) // 2, len(CONTENT) + 3, sealed - 5, sealed - 1):
        yield (
            f"flipped at {at}",
            lambda data, at=at: data[:at] + bytes([data[at] ^ 16]) + data[at + 1 :],
        )
    yield "longer", lambda data: data + b"\0"
    yield "zeros", lambda data: bytes(len(data))


@pytest.mark.parametrize(("name", "damage"), list(damages()))
def test_a_damaged_file_is_made_again_once(name, damage):
    make, file = Maker(), CachedFile("things", "one")
    file.content(make)
    whole = file.path.read_bytes()
    file.path.write_bytes(damage(whole))
    assert file.read() is None
    assert file.content(make) == CONTENT
    assert file.content(make) == CONTENT
    assert make.calls == 2
    assert file.path.read_bytes() == whole


def test_a_file_under_the_name_of_another_is_damaged():
    one, other = CachedFile("things", "one"), CachedFile("things", "other")
    one.write(CONTENT)
    other.path.write_bytes(one.path.read_bytes())
    assert other.read() is None


@pytest.mark.parametrize("in_its_place", ["folder", "dangling link"])
def test_what_is_no_file_is_no_content(in_its_place):
    file, make = CachedFile("things", "one"), Maker()
    if in_its_place == "folder":
        file.path.mkdir()
    else:
        file.path.symlink_to("nowhere")
    assert file.content(make) == CONTENT


def test_a_failure_leaves_nothing(folder):
    def fail():
        raise InputError("no")

    with pytest.raises(InputError, match="no"):
        CachedFile("things", "one").content(fail)
    assert list((folder / "things").iterdir()) == []


def test_content_is_given_where_it_cannot_be_kept_and_nothing_half_is_left(folder, monkeypatch):
    def full(*_, **__):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr("tilewright.spaces.validation.files.os.fsync", full)
    file, make = CachedFile("things", "one"), Maker()
    assert file.content(make) == CONTENT
    assert list((folder / "things").iterdir()) == []
    with pytest.raises(InputError, match=r"cannot write to .*No space left.*XDG_CACHE_HOME"):
        file.write(CONTENT)
    with pytest.raises(InputError, match="No space left"):
        file.program(make)
    assert [p for p in (folder / "runs").rglob("*") if p.name != "lock"] == []


@pytest.mark.parametrize("umask", [0o022, 0o027, 0o077])
def test_files_have_the_rights_that_the_umask_leaves(umask):
    plain, program = CachedFile("things", "plain"), CachedFile("things", "program")
    before = os.umask(umask)
    try:
        plain.write(CONTENT)
        program.program(Maker())
    finally:
        os.umask(before)
    assert stat.S_IMODE(plain.path.stat().st_mode) == 0o666 & ~umask
    assert stat.S_IMODE(program.path.stat().st_mode) == 0o777 & ~umask


def test_a_program_that_lost_the_right_to_run_gets_it_back():
    file, make = CachedFile("things", "program"), Maker()
    file.program(make).chmod(0o644)
    assert os.access(file.program(make), os.X_OK)
    assert make.calls == 1


def test_a_damaged_program_is_made_again():
    file, make = CachedFile("things", "program"), Maker()
    path = file.program(make)
    path.write_bytes(b"")
    assert file.program(make) == path
    assert (make.calls, file.read()) == (2, CONTENT)


@pytest.mark.parametrize("elsewhere", ["/dev/null", "missing", "another"])
def test_a_link_is_replaced_and_not_followed(tmp_path, elsewhere):
    another = tmp_path / "another"
    another.write_text("of somebody else")
    file = CachedFile("things", "tool")
    file.path.symlink_to(tmp_path / elsewhere)
    path = file.program(Maker())
    assert not path.is_symlink()
    assert file.read() == CONTENT
    assert another.read_text() == "of somebody else"
    assert not (tmp_path / "missing").exists()


def test_where_programs_cannot_be_run_it_says_so(monkeypatch):
    monkeypatch.setattr(cache.os, "access", lambda *_: False)
    with pytest.raises(InputError, match=r"cannot be run; XDG_CACHE_HOME"):
        CachedFile("things", "program").program(Maker())


def test_what_was_not_used_for_longest_makes_room(monkeypatch):
    files = [CachedFile("things", f"number {number}") for number in range(6)]
    for age, file in enumerate(files[:5]):
        file.write(CONTENT)
        os.utime(file.path, (1e9 - age, 1e9 - age))
    assert files[4].read() == CONTENT  # it is used now
    monkeypatch.setattr(cache, "MOST_BYTES", 5 * (len(CONTENT) + SEAL_BYTES))
    monkeypatch.setattr(cache, "KEPT_SHARE", 0.8)
    files[5].write(CONTENT)
    assert [file.read() is not None for file in files] == [True, True, False, False, True, True]


def test_files_are_not_counted_for_each_that_is_added(monkeypatch):
    counted, files = [], cache._files
    monkeypatch.setattr(cache, "_files", lambda folder: counted.append(folder) or files(folder))
    monkeypatch.setattr(cache, "COUNTED_SHARE", 4 * (len(CONTENT) + SEAL_BYTES) / cache.MOST_BYTES)
    for number in range(9):
        CachedFile("things", f"number {number}").write(CONTENT)
    assert len(counted) == 3


def test_a_file_alone_is_kept_however_large_it_is(monkeypatch):
    monkeypatch.setattr(cache, "MOST_BYTES", 1)
    file = CachedFile("things", "large")
    file.write(CONTENT)
    assert file.read() == CONTENT


def test_what_is_held_is_counted_and_cleared(folder):
    for kind in ("binaries", "cubins"):
        CachedFile(kind, "one").write(CONTENT)
    other = CachedFile("cluster", "known")
    other.write(CONTENT)
    (folder / "binaries" / "link").symlink_to(other.path)
    found = {held.kind: (held.files, held.bytes) for held in cache.cached_kinds()}
    one = (1, len(CONTENT) + SEAL_BYTES)
    none = dict.fromkeys(cache.KINDS, (0, 0))
    assert found == none | {"binaries": one, "cubins": one}
    cache.clear()
    assert {held.files for held in cache.cached_kinds()} == {0}
    assert other.read() == CONTENT
