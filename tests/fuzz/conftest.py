"""A ground to play on: a tuned database, its export, a model, and a cache that has them all."""

from __future__ import annotations

import shutil
from dataclasses import dataclass
from pathlib import Path

import pytest

from tests.caches import warm_cache
from tests.fuzz.children import LIMIT, harms
from tests.fuzz.commands import PROGRAM, SEGMENTS, WORDS, command


@dataclass(frozen=True)
class Ground:
    """Paths of good files, which nobody may spoil; spoil copies."""

    database: Path
    export: Path
    model: Path
    cache: Path


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run these tests before all others: they fork, and in a forked child XGBoost waits for ever
    for the threads that it had in the parent, once it has trained there."""
    items.sort(key=lambda item: not item.nodeid.startswith("tests/fuzz/"))


@pytest.fixture(scope="package")
def ground(tmp_path_factory) -> Ground:
    folder = tmp_path_factory.mktemp("ground")
    cache = warm_cache(folder / "cache")
    made = Ground(folder / "t.db", folder / "t.jsonl", folder / "t.json", cache)

    def make() -> None:
        database = ("--db", str(made.database))
        for words, trials in ((WORDS, "12"), (PROGRAM, "4"), (SEGMENTS, "4")):
            tune = ("tune", *words, "--trials", trials, "--seconds", "100", "-q")
            assert command(*tune, *database) == 0
        assert command("export", str(made.export), *database) == 0
        assert command("train", "--out", str(made.model), *database) == 0

    with pytest.MonkeyPatch.context() as patch:
        patch.setenv("XDG_CACHE_HOME", str(made.cache))
        found = harms([make], folder, limit=250)
    assert not found, found[0]
    return made


@pytest.fixture
def place(ground, tmp_path, monkeypatch):
    """A folder of one's own to be in, with the cache of the ground."""
    monkeypatch.setenv("XDG_CACHE_HOME", str(ground.cache))
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def survive(place):
    """Runs ``count`` actions made by number, each at most ``limit`` seconds, and fails with what is
    to be said against them."""

    def run(make_action, count: int, limit: float = LIMIT) -> None:
        said = place / "said"
        said.mkdir()
        found = harms([make_action(number) for number in range(count)], said, limit)
        shutil.rmtree(said)
        kinds = {text.strip().rpartition("\n")[2]: text for text in reversed(found)}
        one_of_each = "\n".join(kinds.values())
        assert not found, f"{len(found)} of {count} in {len(kinds)} ways:\n{one_of_each}"

    return run
