"""Gradients of random programs equal differences in float64."""

from contextlib import suppress

import numpy as np
from hypothesis import assume, given, settings

from tests.spaces.derivation.gradients.differences import check
from tests.spaces.language.strategies import programs
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate_stages
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.workloads.gradients import differentiable


@settings(max_examples=60)
@given(programs())
def test_random_gradients(described) -> None:
    text, extents = described
    try:
        made = program(text, dtype="float64", **extents)
    except InputError:
        assume(False)
    with np.errstate(all="ignore"):
        values = evaluate_stages(made, draw(made, 1))
    assume(all(np.all(np.abs(values[stage.name]) < 1e4) for stage in made.stages))
    with suppress(InputError):  # of what has no gradient, or none that fits
        for name in differentiable(made):
            check(made, [name])
