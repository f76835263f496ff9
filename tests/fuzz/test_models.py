"""Model files from strangers, with digests that are right."""

from __future__ import annotations

import hashlib
import json
import random

import numpy as np
import pytest

from tests.fuzz.commands import SHAPE, check_words
from tests.fuzz.damage import as_text, spoiled_bytes, spoiled_json
from tilewright.costmodel.model import XGBoostModel
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.validation.canonical import canonical_json

ALL = pytest.param(500, marks=[pytest.mark.slow, pytest.mark.timeout(3600)], id="all")


def spoiled(rng: random.Random, data: bytes) -> bytes:
    """A model file that is changed: as bytes, or as JSON with its digest made right again."""
    if rng.random() < 0.2:
        return spoiled_bytes(rng, data)
    model = json.loads(data)
    model.pop("sha256")
    where = rng.randrange(4)
    if where == 0:
        model = spoiled_json(rng, model)
    elif where == 1:
        model["boosted"] = spoiled_json(rng, model["boosted"])
    else:
        trees = model["boosted"]["trees"]
        for _ in range(rng.choice([1, 1, 4])):
            at = rng.randrange(len(trees))
            trees[at] = spoiled_json(rng, trees[at]) if where == 2 else _moved(rng, trees[at])
    if isinstance(model, dict):
        digest = hashlib.sha256(canonical_json(model).encode()).hexdigest()
        model["sha256"] = digest
    return as_text(rng, model)


def _moved(rng: random.Random, tree: dict) -> dict:
    """A tree with some of its numbers near to what they were, so that most checks still pass."""
    lists = ("left", "right", "feature", "missing_left", "value")
    for _ in range(rng.choice([1, 2, 3])):
        numbers = tree[rng.choice(lists)]
        numbers[rng.randrange(len(numbers))] = rng.choice(
            [rng.randrange(-2, len(numbers) + 2), rng.choice(numbers), 10**6, -1]
        )
    return tree


@pytest.mark.parametrize("count", [40, ALL])
def test_a_damaged_model_is_refused_or_predicts(ground, place, survive, count):
    whole = ground.model.read_bytes()
    space = space_for(workload("matmul", **SHAPE), detect_target("cpu"))
    rows = space.sample(np.random.default_rng(0), 200)

    def act(number):
        def run():
            path = place / f"{number}.json"
            path.write_bytes(spoiled(random.Random(f"model {number}"), whole))
            try:
                model = XGBoostModel.load(path)
            except InputError as error:
                check_words(error)
                return
            score, spread = model.predict(space, rows)
            assert np.isfinite(score).all()
            assert np.isfinite(spread).all()

        return run

    survive(act, count)
