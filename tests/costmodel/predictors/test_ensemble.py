"""Models of several devices, and what they say together."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from tilewright.costmodel.dataset import Group
from tilewright.costmodel.model import LEAST_ROWS, XGBoostModel
from tilewright.costmodel.predictors.ensemble import ensemble
from tilewright.costmodel.testing.toys import points, product, toy_space, true_latency
from tilewright.spaces.space import Space
from tilewright.spaces.testing.targets import made_up_cpu

HERE = made_up_cpu()
THERE = replace(HERE, model="another")


def measured(space: Space, count: int = 200, backwards: bool = False) -> Group:
    """On a machine, or on one where all that is fast there is slow."""
    rows = points(space, count)
    latency = true_latency(space, rows)
    return Group(space, rows, 1 / latency if backwards else latency)


@pytest.fixture
def space() -> Space:
    return toy_space(product(), HERE)


def test_each_device_has_a_model_of_its_own(space):
    there = toy_space(product(), THERE)
    shapes = [measured(space), measured(toy_space(product(m=64), HERE)), measured(there)]
    found = ensemble(shapes)
    assert [len(member.trained_on) for member in found.members] == [2, 1]
    rows = points(space, 50, seed=1)
    said = [member.predict(space, rows)[0] for member in found.members]
    np.testing.assert_allclose(found.predict(space, rows)[0], np.mean(said, axis=0))


def test_one_device_is_as_a_model_alone(space):
    alone = XGBoostModel()
    alone.fit_groups([measured(space)])
    rows = points(space, 50, seed=1)
    for both in zip(
        ensemble([measured(space)]).predict(space, rows), alone.predict(space, rows), strict=True
    ):
        np.testing.assert_array_equal(*both)


def test_where_devices_differ_it_is_unsure(space):
    rows = points(space, 50, seed=1)
    there = toy_space(product(), THERE)
    alike = ensemble([measured(space), measured(there)])
    different = ensemble([measured(space), measured(there, backwards=True)])
    assert different.predict(space, rows)[1].mean() > 1.5 * alike.predict(space, rows)[1].mean()


def test_a_device_with_few_rows_is_not_heard(space):
    few = measured(toy_space(product(), THERE), LEAST_ROWS - 1)
    assert len(ensemble([measured(space), few]).members) == 1
    assert ensemble([few]) is None
