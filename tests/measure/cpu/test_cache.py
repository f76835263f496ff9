import pytest

from measure.cpu import cache
from measure.cpu.cache import RunDirectory, cache_directory, cached
from spaces.errors import InputError


@pytest.fixture
def folder(tmp_path, monkeypatch):
    monkeypatch.setattr(cache.platformdirs, "user_cache_path", lambda name: tmp_path / name)
    return tmp_path / "tilewright"


def test_a_file_is_made_once(folder):
    made = []

    def make(path):
        made.append(path)
        path.write_text("content")

    target = cache_directory("things") / "thing.so"
    assert cached(target, make) == target
    assert cached(target, make).read_text() == "content"
    assert len(made) == 1
    assert made[0] != target, "written under another name first"


def test_a_failure_leaves_nothing(folder):
    def fail(path):
        path.write_text("half")
        raise RuntimeError("no")

    target = cache_directory("things") / "thing.so"
    with pytest.raises(RuntimeError):
        cached(target, fail)
    assert list(target.parent.iterdir()) == []


def test_a_folder_that_cannot_be_made_is_named(folder):
    folder.write_text("a file is in its place")
    with pytest.raises(InputError, match=r"cache folder .*XDG_CACHE_HOME"):
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
