"""All that is derived of programs of any kind, against direct evaluations."""

import numpy as np
import pytest
from hypothesis import assume, given, settings

from tests.spaces.derivation.contractions import contracted
from tests.spaces.language.strategies import programs
from tilewright.spaces.derivation.chains.chain import chains
from tilewright.spaces.derivation.chains.fused import evaluate
from tilewright.spaces.derivation.facts import describe
from tilewright.spaces.derivation.products.prologue import loads
from tilewright.spaces.derivation.products.roles import roles_of
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate as outputs_of
from tilewright.spaces.language.evaluation import evaluate_stages
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.numerics.allowance import agrees


def read(text, extents):
    """The program, if the language has it and its values are neither huge nor missing."""
    try:
        made = program(text, dtype="float64", **extents)
    except InputError:
        assume(False)
    values = draw(made, 1)
    with np.errstate(all="ignore"):
        stages = evaluate_stages(made, values)
    assume(all(np.all(np.abs(stages[stage.name]) < 1e6) for stage in made.stages))
    return made, values, stages


def chains_give_what_the_program_means(made, values, stages):
    for found in chains(made):
        size = int(np.prod(made.shape(found.over)))
        order = np.random.default_rng(size).permutation(size)
        with np.errstate(all="ignore"):
            fused = evaluate(made, found, values, np.array_split(order, 3), 2)
        for stage in made.stages:
            np.testing.assert_allclose(fused[stage.name], stages[stage.name], 1e-7, 1e-7)


def products_are_products_of_matrices(made, values, stages):
    for stage in made.stages:
        found = roles_of(made, stage)
        if isinstance(found, str):
            continue
        factors = loads(made, found)
        if not any(load.obstacle for load in factors):
            with np.errstate(all="ignore"):
                result = contracted(made, found, factors, stages)
            np.testing.assert_allclose(result, stages[stage.name], 1e-9, 1e-9)


def what_is_exact_is_allowed(made, values):
    exact = outputs_of(made, values)
    for name, (low, high) in allowed(made, values).items():
        assert agrees(exact[name], low, high).all()


def check(text, extents):
    made, values, stages = read(text, extents)
    assert describe(made).lines
    chains_give_what_the_program_means(made, values, stages)
    products_are_products_of_matrices(made, values, stages)
    what_is_exact_is_allowed(made, values)


@given(programs())
@settings(max_examples=25)
def test_what_is_derived_of_random_programs_holds(drawn):
    check(*drawn)


@pytest.mark.slow
@given(programs())
@settings(max_examples=100)
def test_what_is_derived_of_many_random_programs_holds(drawn):
    check(*drawn)
