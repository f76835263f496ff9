"""What the tests of the command line share: a cache, a tuned database, a folder to be in."""

from __future__ import annotations

import json

import pytest

from tests.caches import warm_cache
from tests.scheduler.cli.command import FUSED, SMALL, TRIALS, finished


@pytest.fixture(scope="package", autouse=True)
def _cache(tmp_path_factory):
    """A cache of our own, so that nothing left by other runs decides a test."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(warm_cache(tmp_path_factory.mktemp("cache"))))
        yield


@pytest.fixture(scope="package")
def tuned(tmp_path_factory, _cache):
    """A database that ``tilewright tune`` filled, and the events it printed of each workload."""
    folder = tmp_path_factory.mktemp("tuned")
    budget = ("--trials", str(TRIALS), "--seconds", "100")
    options = (*budget, "--db", "tuning.db", "--format", "json")
    said = []
    for words in (SMALL, FUSED):
        code, out, err = finished("tune", *words, *options, cwd=folder)
        assert (code, err) == (0, "")
        said.append([json.loads(line) for line in out.splitlines()])
    return folder / "tuning.db", said


@pytest.fixture
def here(tmp_path, monkeypatch):
    """A folder with a file that is nothing of ours."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "notes.txt").write_text("buy milk\n" * 999)
    return tmp_path
