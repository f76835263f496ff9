"""What nobody tuned beside what was tuned: which cases, which schedules, and what the page says."""

from __future__ import annotations

import json

import numpy as np

from experiments.models.choosing import kernels, untuned_first
from experiments.models.known import known_of
from experiments.operators.families.cases import case
from experiments.operators.untuned import entries, known_of_entry, table
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.registry import space_for

TARGET = cuda_target("sm_80")


def test_every_family_has_its_turn_and_every_case_a_name():
    found = list(entries())
    assert len({entry.name for entry in found}) == len(found)
    families = {entry.family for entry in found}
    assert {entry.family for entry in found[: len(families)]} == families
    assert families > {"rows", "maps", "convolutions", "grouped", "batched", "gpt-2, batch 8"}


def test_what_is_known_of_an_operator_of_a_model_is_known_by_its_name(tmp_path):
    entry = next(entry for entry in entries() if entry.family == "gpt-2, batch 8")
    schedule = {"template": "mma", "decisions": {"tile_rows": 2}}
    name = entry.name.split(": ")[1]
    row = {"explored": [{"us": 1.0, "schedule": schedule}]}
    models = {"gpt-2, batch 8": {"operators": {name: row}}}
    (tmp_path / "models").write_text(json.dumps({"models": models}))
    found = known_of_entry(known_of([tmp_path / "models"]), entry)
    assert [each.to_json() for each in found] == [schedule]


def test_what_nobody_tuned_is_built_first_and_what_is_known_after_it():
    work = case("softmax", "float32", r=4, c=64).workload
    space = space_for(work, TARGET)
    known = [space.schedule(row) for row in space.sample(np.random.default_rng(3), 2)]
    built = untuned_first(work, TARGET, known)
    assert [each.candidate.schedule for each in built[1:]] == known
    assert built[0].candidate.schedule in space
    assert all(isinstance(each.binary, bytes) for each in built)
    assert len(kernels(space, known * 2)) == 2


def test_a_page_says_which_are_less_than_half_as_fast():
    def row(family, tuned, untuned):
        times = {"tilewright": tuned} | ({"untuned": untuned} if untuned else {})
        schedules = {"schedule": {"template": "map"}, "untuned": {"template": "rows"}}
        return {"operator": family, "median_s": times, "outcomes": {"wrong": 1}, **schedules}

    rows = {"a": row("maps", 1e-6, 4e-6), "b": row("maps", 1e-6, 1e-6), "c": row("rows", 1e-6, 0)}
    text = table({"date": "2026-01-01", "command": "x", "cases": rows})
    assert "| maps | 2 | 0.50 | 0.25 | 1 |" in text
    assert "| a | 1.0 | map | 4.0 | rows | 0.25 | - |" in text
    assert "| c | 1.0 | map | - | rows | {'wrong': 1} | - |" in text
    assert "| rows |" not in text.split("| case")[0]
