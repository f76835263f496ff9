"""Boosted trees that also see what another model predicts."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.interfaces import CostModel
from tilewright.costmodel.model import Settings, XGBoostModel
from tilewright.costmodel.stacked import StackedModel
from tilewright.costmodel.testing.cost_model import CostModelContract
from tilewright.costmodel.testing.toys import points, product, toy_space, true_latency
from tilewright.spaces.space import Population, Space
from tilewright.spaces.testing.targets import made_up_cpu


def latencies(space: Space, rows: Population) -> np.ndarray:
    """With a factor that no feature explains."""
    luck = [np.random.default_rng(row).lognormal(sigma=0.5) for row in rows.tolist()]
    return true_latency(space, rows) * np.array(luck)


class Knowing:
    """Says all there is to say, but on another scale; or the same for all."""

    def __init__(self, informed: bool = True) -> None:
        self.informed = informed

    def predict(self, space: Space, population: Population) -> tuple[np.ndarray, np.ndarray]:
        score = 1e-4 / latencies(space, population)
        return (score if self.informed else np.ones_like(score)), np.zeros_like(score)


def only(workload, target):
    return toy_space(workload, target)


class TestAdvisedModel(CostModelContract):
    def make(self) -> CostModel:
        return StackedModel(Knowing(informed=False), Settings(), only)

    def load(self, path: Path) -> CostModel:
        return XGBoostModel.load(path, space_for=only)


@pytest.fixture
def space():
    return toy_space(product(), made_up_cpu())


def test_it_learns_from_few_rows_what_its_adviser_knows(space):
    rows, others = points(space, 32), points(space, 300, seed=1)
    truth = 1 / latencies(space, others)
    found = []
    for informed in (True, False):
        model = StackedModel(Knowing(informed), Settings(), only)
        model.fit_groups([Group(space, rows, latencies(space, rows))])
        found.append(np.corrcoef(model.predict(space, others)[0], truth)[0, 1])
    assert 1 - found[0] < 0.5 * (1 - found[1])


def test_an_adviser_that_tells_nothing_apart_changes_nothing(space):
    rows, others = points(space, 64), points(space, 100, seed=1)
    models = StackedModel(Knowing(informed=False), Settings(), only), XGBoostModel(space_for=only)
    for model in models:
        model.fit_groups([Group(space, rows, true_latency(space, rows))])
    advised, alone = (model.predict(space, others) for model in models)
    np.testing.assert_array_equal(advised, alone)
