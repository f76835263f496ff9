"""Stages that read themselves one step before are read, told apart and evaluated step by step."""

import re

import numpy as np
import pytest

from tests.spaces.cycle_programs import TEXTS, expected, extents_of
from tests.spaces.random_cycles import EXTENTS, random_cycles
from tilewright.spaces.language import program
from tilewright.spaces.language.cycles import cycles
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.workloads.served import workload_of

STATES = {
    "sums": ("h",),
    "gates": ("c", "h"),
    "delta": ("S",),
    "gated delta": ("S",),
    "matrix": ("h",),
    "gates backwards": ("c", "h"),
}


def made(name, **changes):
    return program(TEXTS[name], **extents_of(name, **changes))


@pytest.mark.parametrize("name", TEXTS)
@pytest.mark.parametrize("steps", [1, 2, 9])
def test_steps_are_those_of_a_loop(name, steps):
    found = made(name, t=steps)
    inputs = draw(found, steps)
    results = list(evaluate(found, inputs).values())
    np.testing.assert_allclose(results[-1], expected(name, inputs), 1e-12, 1e-12)


@pytest.mark.parametrize("name", TEXTS)
def test_text_and_json_say_all_of_a_cycle(name):
    found = made(name)
    again = program(str(found))
    assert again == found
    assert again.digest == found.digest
    lines = workload_of(found).to_json()["program"]
    assert program("\n".join(lines)).digest == found.digest


@pytest.mark.parametrize("name", STATES)
def test_cycles_know_their_state(name):
    (found,) = cycles(made(name))
    assert (found.axis, found.state) == ("t", STATES[name])
    assert found.direction == (-1 if name.endswith("backwards") else 1)


def test_a_program_without_cycles_has_none():
    assert not cycles(program("y[t] = inside(x[t - 1], 0) + x[t]", t=4))


def test_names_and_writing_do_not_count():
    first = program("h[t] = 0.5 * inside(h[t - 1], 0) + x[t]", t=4)
    second = program("state[i] = given[i] + inside(state[-1 + i], 0) / 2", i=4)
    assert first.digest == second.digest


def test_maps_within_a_cycle_may_be_written_out():
    apart = program("f[t] = tanh(inside(h[t - 1], 0)); h[t] = f[t] + x[t]", t=4)
    whole = program("h[t] = tanh(inside(h[t - 1], 0)) + x[t]", t=4)
    assert apart.digest == whole.digest


DIFFERENT = (
    "h[t] = 0.5 * inside(h[t - 1], 0) + x[t]",
    "h[t] = 0.5 * inside(h[t - 1], 1) + x[t]",
    "h[t] = 0.5 * inside(x[t - 1], 0) + x[t]",
    "h[t] = 0.25 * inside(h[t - 1], 0) + x[t]",
    "a[t] = 0.5 * inside(h[t - 1], 0); h[t] = 0.5 * inside(a[t - 1], 0) + x[t]",
    "a[t] = 0.5 * inside(a[t - 1], 0) + x[t]; h[t] = 0.5 * inside(a[t - 1], 0) + x[t]",
    "a[t] = 0.5 * inside(h[t - 1], 0) + x[t]; h[t] = 0.5 * inside(a[t - 1], 0) + x[t]",
    "a[t] = 0.5 * inside(a[t - 1], 0) + x[t]; h[t] = 0.5 * inside(h[t - 1], 0) + a[t]",
)


def test_programs_that_mean_something_else_are_told_apart():
    digests = {program(f"x: float32[4]; {text}", t=4).digest for text in DIFFERENT}
    assert len(digests) == len(DIFFERENT)


def test_two_cycles_alike_are_told_from_one_that_reads_both():
    """Sums within two cycles are written alike, and are not the same sums."""
    stage = (
        "u{0}[t] = sum[d](inside({0}[t - 1, d], 0) * k[d]); "
        "{0}[t, d] = {2} * inside({0}[t - 1, d], 0) + u{1}[t] + x[t, d]; "
    )
    own = stage.format("a", "a", 0.5) + stage.format("b", "b", 0.25) + "-> a, b"
    shared = stage.format("a", "a", 0.5) + stage.format("b", "a", 0.25).split("; ")[1]
    shared += "; -> a, b"
    assert program(own, t=3, d=2).digest != program(shared, t=3, d=2).digest


def test_stages_between_those_of_a_cycle_come_before_or_behind_it():
    text = """
        f[t] = inside(h[t - 1], 0) * x[t]
        s = sum[t](x[t])
        y[t] = f[t] * 2
        h[t] = f[t] + s
        -> y, h"""
    found = program(text, t=5)
    assert [stage.name for stage in found.stages] == ["s", "f", "y", "h"] or [
        stage.name for stage in found.stages
    ] == ["s", "f", "h", "y"]
    inputs = draw(found, 1)
    x, h, wanted = np.asarray(inputs["x"], float), 0.0, []
    for each in x:
        h = h * each + x.sum()
        wanted.append(h)
    np.testing.assert_allclose(evaluate(found, inputs)["h"], wanted)


def test_infinities_pass_from_step_to_step():
    found = program("h[t] = 0.5 * inside(h[t - 1], 0) + x[t]", t=5)
    x = np.array([1, np.inf, 1, -np.inf, 2], np.float32)
    np.testing.assert_array_equal(
        evaluate(found, {"x": x})["h"], [1, np.inf, np.inf, np.nan, np.nan]
    )


@pytest.mark.parametrize("seed", range(40))
def test_random_cycles_are_those_of_loops(seed):
    made = random_cycles(seed)
    used = {a: n for a, n in EXTENTS.items() if re.search(rf"\b{a}\b", made.text)}
    found = program(made.text, **used)
    inputs = {name: np.asarray(array) for name, array in draw(found, seed).items()}
    results, wanted = evaluate(found, inputs), made.computed(inputs)
    for name, array in results.items():
        np.testing.assert_allclose(array, wanted[name], 1e-12, 1e-12)
    assert program(str(found)).digest == found.digest
