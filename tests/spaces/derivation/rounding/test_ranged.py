"""Bounds of stages over ranges: those of the conditions, at the entries alone."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.language.ragged_programs import BODIES, graphs, inputs_of, ragged_program
from tilewright.spaces.derivation.rounding import allowance
from tilewright.spaces.derivation.rounding.rows import Rows
from tilewright.spaces.language.ranges import Ranges


def as_rectangles(made, inputs, rows, monkeypatch):
    """The bounds by all rows and entries, of which conditions leave some out."""
    with monkeypatch.context() as patch:
        patch.setattr(allowance, "ranges", lambda program: Ranges({}, {}))
        return allowance.allowed(made, inputs, rows)


@pytest.mark.parametrize("pointers", [False, True])
@pytest.mark.parametrize("name", BODIES)
def test_bounds_are_those_of_the_conditions(name, pointers, monkeypatch):
    made = ragged_program(name, pointers)
    for number, rows in list(enumerate(graphs().values()))[pointers::2]:
        inputs = inputs_of(made, rows, number)
        some = Rows({"r": np.array([0, 3, 4, 7])}) if number % 3 else None
        monkeypatch.setattr(allowance, "CHUNK", (1 << 19, 9)[number // 2 % 2])
        found = allowance.allowed(made, inputs, some)["y"]
        wanted = as_rectangles(made, inputs, some, monkeypatch)["y"]
        for ends, others in zip(found, wanted, strict=True):
            np.testing.assert_allclose(ends, others, 1e-6, 1e-9)


def test_a_place_is_contested_between_near_values_of_its_own_row():
    made = ragged_program("places of edges")
    inputs = inputs_of(made, np.repeat(np.arange(8), 3))
    inputs["val"][:], inputs["w"][:] = 1, 0.1
    inputs["val"][[1, 2]] = 0.3
    low, high = allowance.allowed(made, inputs)["y"]
    assert (low[0], high[0]) == (1, 2)
    assert (low[1:] == 0).all()
    assert (high[1:] == 23).all()
