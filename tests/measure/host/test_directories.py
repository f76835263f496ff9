"""Folders of the cache: who is trusted with them, and what is left behind."""

import os
import pwd
import stat

import pytest

from tilewright.measure.host import directories
from tilewright.measure.host.directories import RunDirectory, cache_directory
from tilewright.spaces.errors import InputError

as_root = pytest.mark.skipif(os.geteuid() != 0, reason="only root gives folders away")


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "tilewright"


def test_a_folder_that_cannot_be_made_is_named(folder):
    folder.write_text("a file is in its place")
    with pytest.raises(InputError, match=r"cache folder .*XDG_CACHE_HOME"):
        cache_directory("things")


def test_a_user_without_a_home_is_asked_for_a_folder(tmp_path, monkeypatch):
    """As in a container that runs as any number."""

    def nobody(number):
        raise KeyError(number)

    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(pwd, "getpwuid", nobody)
    for name in ("HOME", "XDG_CACHE_HOME"):
        monkeypatch.delenv(name, raising=False)
    with pytest.raises(InputError, match="no home folder for a cache; XDG_CACHE_HOME names"):
        cache_directory("things")
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("umask", [0o000, 0o022, 0o077])
def test_new_folders_have_the_rights_that_the_umask_leaves_and_none_for_everybody(folder, umask):
    before = os.umask(umask)
    try:
        made = cache_directory("things")
    finally:
        os.umask(before)
    for path in (made, folder):
        assert stat.S_IMODE(path.stat().st_mode) == 0o775 & ~umask


def test_a_folder_that_everybody_can_write_to_is_refused(folder):
    cache_directory("things").chmod(0o777)
    with pytest.raises(InputError, match=r"everybody can write to .*things.*XDG_CACHE_HOME"):
        cache_directory("things")
    folder.chmod(0o777)
    with pytest.raises(InputError, match="everybody can write"):
        cache_directory("others")


@as_root
def test_a_folder_of_another_user_is_taken_but_not_where_everybody_could_have_made_it(folder):
    cache_directory("things")
    os.chown(folder, 1234, -1)
    assert cache_directory("things").exists()
    folder.parent.chmod(0o1777)
    with pytest.raises(InputError, match="belongs to another user"):
        cache_directory("things")


def test_folders_of_live_runs_stay_and_those_of_dead_ones_go(folder):
    live = RunDirectory()
    dead = live.path.parent / "run-dead"
    dead.mkdir()
    (dead / "lock").touch()
    unlocked = live.path.parent / "run-torn"
    unlocked.mkdir()
    other = RunDirectory()
    assert live.path.exists()
    assert other.path.exists()
    assert not dead.exists()
    assert not unlocked.exists()
    live.close()
    live.close()
    assert not live.path.exists()
    other.close()


def test_a_run_without_room_for_its_folder_is_one_sentence(folder, monkeypatch):
    def full(**_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(directories.tempfile, "mkdtemp", full)
    with pytest.raises(InputError, match=r"No space left on device; XDG_CACHE_HOME"):
        RunDirectory()
