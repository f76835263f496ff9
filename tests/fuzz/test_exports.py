"""Exports from strangers: records of hostile numbers, texts, targets and schedules."""

from __future__ import annotations

import json
import os
import random
import shutil

import pytest

from tests.fuzz.commands import PROGRAM, SEGMENTS, WORDS, command, rightly
from tests.fuzz.damage import as_text, spoiled_bytes, spoiled_json

ALL = pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(7200)], id="all")
PARTS = ("target", "schedule", "workload", "samples", None, None)


def hostile(rng: random.Random, lines: list[bytes]) -> bytes:
    """An export whose records are spoiled, some in one part, some as text."""
    head, *records = lines
    chosen = rng.sample(records, min(len(records), rng.choice([1, 1, 3, 12])))
    spoiled = [_spoiled(rng, line) for line in chosen]
    honest = records[: rng.choice([0, 4, len(records)])]
    if rng.random() < 0.05:
        head = spoiled_bytes(rng, head)
    data = b"\n".join([head, *honest, *spoiled, *honest]) + b"\n"
    return spoiled_bytes(rng, data) if rng.random() < 0.1 else data


def _spoiled(rng: random.Random, line: bytes) -> bytes:
    record, part = json.loads(line), rng.choice(PARTS)
    if part in record:
        record[part] = spoiled_json(rng, record[part], rng.choice([1, 1, 2, 5]))
    else:
        record = spoiled_json(rng, record, rng.choice([1, 1, 2]))
    return as_text(rng, record)


@pytest.mark.parametrize("count", [8, ALL])
def test_an_export_of_a_stranger_harms_nobody(ground, place, survive, count):
    lines = ground.export.read_bytes().splitlines()

    def act(number):
        def run():
            rng = random.Random(f"export {number}")
            folder = place / f"{number}"
            folder.mkdir()
            os.chdir(folder)
            (folder / "x.jsonl").write_bytes(hostile(rng, lines))
            command("import", "x.jsonl", "--db", "x.db")
            command("list", "--db", "x.db")
            command("query", *rng.choice((WORDS, PROGRAM, SEGMENTS)), "--db", "x.db")
            if rng.random() < 0.5:
                command("train", "--db", "x.db", "--out", "x.json")
                command("evaluate", str(ground.model), "--db", "x.db")
            command("export", "again.jsonl", "--db", "x.db")
            rightly("x.db")
            os.chdir(place)
            shutil.rmtree(folder)

        return run

    survive(act, count)
