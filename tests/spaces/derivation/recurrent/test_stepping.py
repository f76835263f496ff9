"""Recurrences as stages that read themselves: the same values, by loops over steps."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.recurrent_programs import TEXTS, extents_of
from tilewright.spaces.derivation.recurrent.stepping import stepping
from tilewright.spaces.derivation.recurrent.view import recurrence_of
from tilewright.spaces.language import program
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw

EXTENTS = {"t": 11, "s": 11, "d": 3, "e": 5}


@pytest.mark.parametrize("name", TEXTS)
def test_steps_compute_what_sums_over_prefixes_do(name):
    made = program(TEXTS[name], **extents_of(name, **EXTENTS))
    view = stepping(recurrence_of(made))
    assert cycles(view.program)
    inputs = {key: np.asarray(value, np.float64) for key, value in draw(made, 3).items()}
    wanted, found = evaluate(made, inputs), evaluate(view.program, inputs)
    for output in made.outputs:
        np.testing.assert_allclose(found[output.name], wanted[output.name], 1e-9, 1e-9)


@pytest.mark.parametrize(("name", "direction"), [("retention", 1), ("behind", -1)])
def test_a_state_goes_the_way_of_its_sum(name, direction):
    made = program(TEXTS[name], **extents_of(name, **EXTENTS))
    view = stepping(recurrence_of(made))
    assert view.direction == direction
    assert [cycle.direction for cycle in cycles(view.program)] == [direction] * len(
        cycles(view.program)
    )
