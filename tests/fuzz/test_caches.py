"""Files of the cache that a power cut, a full disk or a stray program damaged."""

from __future__ import annotations

import os
import random
import shutil
from pathlib import Path

import pytest

from tests.fuzz.commands import WORDS, command, rightly
from tests.fuzz.damage import spoiled_bytes

ALL = pytest.param(200, marks=[pytest.mark.slow, pytest.mark.timeout(7200)], id="all")


def spoil(rng: random.Random, path: Path) -> None:
    way = rng.randrange(12)
    if way == 0:
        path.unlink()
    elif way == 1:
        path.chmod(rng.choice([0o000, 0o200, 0o444, 0o600]))
    elif way == 2:
        path.write_bytes(rng.choice([b"\x7fELF", b"{", b"[]", b"#!/bin/sh\nexit 0\n"]))
    elif way == 3:
        path.unlink()
        path.mkdir()
    elif way == 4:
        path.unlink()
        path.symlink_to("/dev/null")
    else:
        path.write_bytes(spoiled_bytes(rng, path.read_bytes()))


@pytest.mark.parametrize("count", [2, ALL])
def test_a_damaged_cache_gives_right_answers_all_the_same(ground, place, survive, count):
    def act(number):
        def run():
            rng = random.Random(f"cache {number}")
            cache = place / f"cache-{number}"
            shutil.copytree(ground.cache, cache)
            os.environ["XDG_CACHE_HOME"] = str(cache)
            files = sorted(path for path in cache.rglob("*") if path.is_file())
            for path in rng.sample(files, rng.choice([1, 2, len(files)])):
                spoil(rng, path)
            database = str(place / f"{number}.db")
            shutil.copy(ground.database, database)
            rightly(database)
            assert command("query", *WORDS, "--db", database) == 0
            if number % 4 == 0:
                budget = ("--trials", "2", "--seconds", "100", "-q")
                code = command("tune", *WORDS, *budget, "--db", database)
                blocked = any(path.is_dir() for path in files)  # nobody's folder is removed
                assert code == 0 or blocked
            os.unlink(database)
            shutil.rmtree(cache)

        return run

    survive(act, count)
