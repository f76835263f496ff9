"""Derived chains against the same programs unfused: by tiles, and parts merged in any order."""

from dataclasses import dataclass, replace
from functools import cache

import numpy as np
import pytest

from tests.spaces.derivation.programs import (
    ATTENTIONS,
    FURTHER_ROWS,
    REFUSED,
    ROWS,
    WITH_EMPTY_ROWS,
    attention,
    inputs,
    random_chain,
    rows,
)
from tilewright.spaces.derivation.algebra import ONE, negated, plus
from tilewright.spaces.derivation.chains.chain import Chain, chain
from tilewright.spaces.derivation.chains.chain_reduction import Scaling, Series
from tilewright.spaces.derivation.chains.fused import FusedPass, State, evaluate
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program
from tilewright.spaces.language.evaluation import evaluate_stages


@dataclass(frozen=True)
class Subject:
    """A program with inputs, its chain along j, and what its stages are by the reference."""

    program: Program
    found: Chain
    values: dict
    expected: dict


@cache
def subject(name, offset=0.0):
    known = {**ATTENTIONS, **WITH_EMPTY_ROWS}
    program = attention(name) if name in known else rows(name)
    over = next(stage.over for stage in program.stages if "j" in stage.over)
    values = inputs(program, offset)
    if name == "place_of_largest":
        values["x"] = np.round(values["x"])  # so that some are equal
    return Subject(program, chain(program, over), values, evaluate_stages(program, values))


def divided(program, found, count, generator):
    """All elements of a row in parts, in any order within and among them; some may be empty."""
    size = int(np.prod(program.shape(found.over)))
    owners = generator.integers(0, count, size)
    order = generator.permutation(size)
    return [order[owners[order] == owner] for owner in range(count)] + [np.arange(0)]


def error(s, count, tile, seed=0, dtype=np.float64, kind=FusedPass):
    """The largest error of any result or output, relative to the largest of its values."""
    generator = np.random.default_rng(seed)

    def pick(length):
        first, second = generator.choice(length, 2, replace=False)
        return int(first), int(second)

    parts = divided(s.program, s.found, count, generator)
    narrow = {n: v.astype(dtype) if v.dtype.kind == "f" else v for n, v in s.values.items()}
    fused = evaluate(s.program, s.found, narrow, parts, tile, pick, kind)
    names = [r.name for p in s.found.passes for r in p if r.name in s.expected]
    return max(distance(fused[n], s.expected[n]) for n in (*names, s.program.outputs[0].name))


def distance(value, expected):
    """Infinite where one is NaN, or infinite alone."""
    finite = np.isfinite(expected) & np.isfinite(value)
    if not np.array_equal(value[~finite], expected[~finite], equal_nan=True):
        return np.inf
    return np.abs(value[finite] - expected[finite]).max(initial=0.0) / np.abs(expected[finite]).max(
        initial=1e-30
    )


@pytest.mark.parametrize("name", [*ATTENTIONS, *WITH_EMPTY_ROWS, *ROWS, *FURTHER_ROWS])
def test_one_pass_by_any_tiles_and_parts_is_as_the_program_means(name):
    s = subject(name)
    assert len(s.found.passes) == 1
    assert not s.found.refusals
    for seed, (count, tile) in enumerate([(1, 1000), (3, 5), (7, 1000)]):
        assert error(s, count, tile, seed) < 1e-11, (count, tile)


@pytest.mark.parametrize("name", ["attention", "layernorm", "softmax"])
def test_tiles_may_be_single_elements(name):
    assert error(subject(name), 1, 1) < 1e-11
    assert error(subject(name), 50, 1) < 1e-11


@pytest.mark.parametrize("name", ["prefill_window", "attention", *ROWS, "third_moment"])
def test_in_float32_a_fused_pass_loses_little(name):
    assert error(subject(name), 4, 8, dtype=np.float32) < 1e-5


@pytest.mark.parametrize("name", ["layernorm", "mean_by_extent"])
def test_in_float32_a_variance_far_from_zero_is_kept(name):
    assert error(subject(name, 1000.0), 4, 8, dtype=np.float32) < 1e-3


def test_exponentials_that_are_not_selected_may_be_infinite():
    assert error(subject("selected", -1000.0), 4, 8) < 1e-11


@pytest.mark.parametrize("name", REFUSED)
def test_what_has_no_correction_is_refused_in_words_and_runs_in_another_pass(name):
    s = subject(name)
    _, refused, words = REFUSED[name]
    ((reduction, sentence),) = s.found.refusals
    assert reduction == refused
    assert words in sentence
    assert len(s.found.passes) == 2
    assert error(s, 3, 7) < 1e-11


def agree_in_any_order(seed):
    """Whether a random chain, fused as far as it can be, gives what its program means; None where
    that is too large to compare, or not in the language."""
    try:
        program = random_chain(seed)
    except InputError:
        return None
    values = {
        n: np.random.default_rng(seed).uniform(-1, 1, a.shape) for n, a in inputs(program).items()
    }
    with np.errstate(all="ignore"):
        expected = evaluate_stages(program, values)
        s = Subject(program, chain(program, ("j",)), values, expected)
        if not max(np.abs(expected[o.name]).max() for o in program.outputs) < 1e4:
            return None
        return bool(error(s, 3, 2, seed) < 1e-8)


def test_random_chains_give_what_their_programs_mean():
    found = [agree_in_any_order(seed) for seed in range(60)]
    assert False not in found
    assert found.count(True) > 40


@pytest.mark.slow
def test_many_random_chains_give_what_their_programs_mean():
    assert all(agree_in_any_order(seed) is not False for seed in range(1000, 2200))


def texts(name):
    return [str(reduction) for p in subject(name).found.passes for reduction in p]


def test_online_softmax_is_derived():
    assert texts("softmax") == [
        "y_max = max of x[r, j]",
        "y_sum = sum of exp(x[r, j] - y_max[r]); times exp(new - old) of -y_max[r]",
    ]


def test_the_division_of_attention_leaves_the_loop():
    *_, last = texts("decode_gqa")
    assert last == (
        "y = sum of exp(p_sum[b, h, i, j] * 0.25 - p_max[b, h, i]) * v[b, h // 4, j, e]; "
        "times exp(new - old) of -p_max[b, h, i]; at the end y[b, h, i, e] * (1 / p_sum2[b, h, i])"
    )


def test_count_mean_and_squared_distances_are_derived_for_layernorm():
    distance = "(x[r, j] - y_sum[r] / y_count)"
    assert texts("layernorm") == [
        "y_sum = sum of x[r, j]",
        "y_count = sum of 1",
        f"y_sum2 = sum of {distance} * {distance}; "
        "plus d**2 * (y_count) with d = new - old of y_sum[r] / y_count",
    ]


def test_a_sum_that_only_a_correction_needs_is_added():
    *_, last = subject("third_moment").found.passes[0]
    assert [power for power, _ in last.correction.terms] == [1, 3]
    assert "y.1" in texts("third_moment")[2]


# -- planted bugs ------------------------------------------------------------------------------


def planted(found, change):
    """The chain with each reduction as ``change`` leaves it."""
    return replace(found, passes=tuple(tuple(map(change, p)) for p in found.passes))


def without_correction(r):
    return replace(r, correction=None)


def inverted(r):
    if isinstance(r.correction, Scaling):
        return replace(r, correction=replace(r.correction, exponent=negated(r.correction.exponent)))
    return r


def without_end(r):
    return replace(r, result=r.state)


def with_terms(change):
    def changed(r):
        if not isinstance(r.correction, Series):
            return r
        return replace(r, correction=replace(r.correction, terms=change(r.correction.terms)))

    return changed


def of_another_result(r):
    """Reads the state of the sum where its mean is meant."""
    if isinstance(r.correction, Series):
        return replace(r, correction=replace(r.correction, about=r.correction.about.left))
    return r


class OldResults(FusedPass):
    def moved(self, r, own, new):
        return super().moved(r, own, own)


class OnePartOnly(FusedPass):
    def merged(self, a, b):
        new = {}
        for r in self.reductions:
            new[r.name] = self.joined(r, self.corrected(r, a, {**b, **new}), b[r.name])
        return new


class Unguarded(FusedPass):
    def corrected(self, r, own, new):
        state = own[r.name]
        value = state.value if r.correction is None else self.moved(r, own, {**own, **new})
        return State(value, state.seen, state.place)


class UnguardedResults(FusedPass):
    def result(self, r, states):
        return self._at(r, r.result, states)


class ElementsUnderOldResults(FusedPass):
    def extended(self, old, elements):
        new = {}
        for r in self.reductions:
            part = self.part(r, elements, {**new, **old})
            new[r.name] = self.joined(r, self.corrected(r, old, new), part)
        return new


class LastOfEqualPlaces(FusedPass):
    def joined(self, r, a, b):
        state = super().joined(r, a, b)
        return state if state.place is None else replace(state, place=np.maximum(a.place, b.place))


BUGS = {
    "no correction": (without_correction, FusedPass),
    "an inverted correction": (inverted, FusedPass),
    "no factor at the end": (without_end, FusedPass),
    "no series": (with_terms(lambda terms: ()), FusedPass),
    "a series twice": (with_terms(lambda terms: terms * 2), FusedPass),
    "a wrong power": (with_terms(lambda t: tuple((k + 1, d) for k, d in t)), FusedPass),
    "a wrong count": (with_terms(lambda t: tuple((k, plus(d, ONE)) for k, d in t)), FusedPass),
    "a series about another result": (of_another_result, FusedPass),
    "corrections to old results": (None, OldResults),
    "one part corrected only": (None, OnePartOnly),
    "an empty part unguarded": (None, Unguarded),
    "an empty row unguarded": (None, UnguardedResults),
    "elements under old results": (None, ElementsUnderOldResults),
    "the last of equal places": (None, LastOfEqualPlaces),
}
WATCHED = ("attention", "layernorm", "rmsnorm_matmul", "place_of_largest")


@pytest.mark.parametrize("bug", [None, *BUGS])
def test_a_planted_bug_is_found(bug):
    change, kind = BUGS[bug] if bug else (None, FusedPass)
    errors = []
    for name in WATCHED:
        s = subject(name)
        wrong = planted(s.found, change) if change else s.found
        with np.errstate(all="ignore"):
            errors.append(error(replace(s, found=wrong), 3, 7, kind=kind))
    assert (max(errors) < 1e-9) == (bug is None)
