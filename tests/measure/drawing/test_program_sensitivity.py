"""Inputs of a program must be such that a wrong kernel shows; where none can, it is refused."""

from dataclasses import replace

import numpy as np
import pytest

from tests.spaces.recurrent_programs import TEXTS, extents_of
from tilewright.measure.drawing import program_sensitivity
from tilewright.measure.drawing.program_sensitivity import (
    Sample,
    mistakes_detected,
    mistakes_planted,
    sensitivity,
)
from tilewright.measure.drawing.sampling import points, runs_of, sample
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.rounding.carried import carried_linearly
from tilewright.spaces.derivation.rounding.reached import reached
from tilewright.spaces.derivation.rounding.rows import Rows
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import Spread, draw
from tilewright.spaces.named import operator
from tilewright.spaces.numerics.allowance import agrees

ORDINARY = {
    "layernorm": {"r": 8, "c": 100},
    "argmax": {"shape": "64x100", "over": "1"},
    "max": {"shape": "64x100", "over": "1", "dtype": "bfloat16"},
    "embedding": {"t": 12, "d": 5, "words": 4},
}


def test_a_state_that_matrices_multiply_is_drawn_such_that_it_grows_little():
    """A sum over all steps shows nothing of the first ones where each is larger than the last."""
    text = "h[t, d] = x[t, d] + sum[e](inside(h[t - 1, e], 0) * m[e, d]); y[d] = sum[t](h[t, d])"
    found = sensitivity(program(text, t=40, d=12, e=12))
    assert (found.spread.operand, found.spread.scale) == ("m", 0.25)
    assert found.share > 0.5


@pytest.mark.parametrize("name", ORDINARY)
def test_ordinary_programs_are_drawn_as_ever(name):
    assert sensitivity(operator(name, **ORDINARY[name])).spread == Spread()


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        ("y[r,c] = relu(x[r,c] - 1000)", {"r": 16, "c": 16}),
        ("y[r] = relu(sum[c](x[r,c]) - 100000)", {"r": 16, "c": 64}),
        ("y[r] = min[c](x[r,c])\nx: int8[8,4096]\ny: int8[8]", {"r": 8, "c": 4096}),
        ("y[r] = argmax[c](x[r,c])\nx: bfloat16[4,20000]", {"r": 4, "c": 20000}),
    ],
)
def test_what_hides_in_the_usual_range_is_drawn_from_another(text, extents):
    work = program(text, **extents)
    how = sensitivity(work)
    assert how.spread != Spread()
    shown = [mistakes_detected(work, draw(work, seed, how.spread)) for seed in range(8)]
    assert max(shown) == mistakes_planted(work)


WEIGHED = "y[i,e] = sum[j](softmax[j](sum[d](q[i,d] * k[j,d]) * 0.2) * v[j,e])"


@pytest.mark.parametrize(
    ("text", "halves"),
    [
        (f"where j <= i\n{WEIGHED}", 4),
        (f"where j <= i + 3\n{WEIGHED}", 4),
        (f"where j <= i\nwhere j > i - 5\n{WEIGHED}", 4),
        (f"where j > i + 90\n{WEIGHED}", 4),
        (f"n: int32[i](index < 11)\nwhere j < n[i]\n{WEIGHED}", 4),
        ("s: int32[i](index < 3)\nwhere j // 16 == s[i]\ny[i] = max[j](x[i,j])", 2),
        ("where j <= i\ny[i] = sum[j](x[i,j])", 2),
        ("where j < 1\ny[i] = sum[j](x[i,j])", 0),
    ],
)
def test_halves_are_of_what_conditions_leave(text, halves):
    work = program(text, i=40, j=128, **({"d": 8, "e": 8} if WEIGHED in text else {}))
    how = sensitivity(work)
    assert mistakes_planted(work) == halves + 1
    assert how.share > 0


@pytest.mark.parametrize(
    "text",
    [
        "y[r] = x[r] - x[r]",
        "y[r] = sigmoid(x[r] * 0)",
        "y[r] = x[r]\nz[r] = floor(sigmoid(x[r]) / 2)\n-> y, z",
        "y[r] = x[r] + 0 * sum[c](v[c])",
    ],
)
def test_what_no_inputs_can_tell_of_is_refused_in_a_sentence(text):
    extents = {"r": 16, "c": 8} if "[c]" in text else {"r": 16}
    with pytest.raises(InputError, match="cannot be verified: whatever its inputs, its outputs do"):
        sensitivity(program(text, **extents))


def test_a_program_without_inputs_shows_by_its_zeros():
    assert sensitivity(program("y[r] = r + 1", r=16)).share == 1.0


def test_a_sample_has_the_corners_of_tiles_and_rows_of_all_parts():
    work = operator("softmax", r=1000, c=100)
    found = sample(work, 200 * 100, np.random.default_rng(1))
    assert list(found.which) == ["r"]
    rows = set(found.which["r"].tolist())
    assert len(rows) == len(found.which["r"]) == 200
    assert (np.diff(found.which["r"]) > 0).all()
    assert {0, 999, 63, 64, 127, 128, 511, 512, 1000 - 128} <= rows
    assert sample(work, points(work), np.random.default_rng(1)) is None
    other = sample(work, 200 * 100, np.random.default_rng(2))
    assert rows != set(other.which["r"].tolist())


def test_one_row_is_taken_however_long_it_is():
    work = operator("softmax", r=10, c=1000)
    assert len(sample(work, 10, np.random.default_rng(1)).which["r"]) == 1


def test_a_sample_has_few_of_many_heads_so_that_few_keys_are_read():
    work = operator("attention", b=1, h=8, i=4096, j=4096, d=128)
    seen = set()
    for seed in range(16):
        found = sample(work, 1 << 19, np.random.default_rng(seed)).which
        assert len(found["h"]) <= 4 <= len(found["i"])
        seen |= set(found["h"].tolist())
    assert seen == set(range(8))


@pytest.mark.parametrize(
    ("name", "sizes"),
    [
        ("layernorm", {"r": 8000, "c": 100}),
        ("embedding", {"t": 4000, "d": 100, "words": 500}),
        ("grouped_matmul", {"t": 200, "n": 100, "k": 64, "experts": 8}),
        ("conv2d", {"n": 16, "c": 8, "h": 20, "w": 20, "o": 8, "r": 3, "s": 3, "groups": 8}),
        ("attention", {"b": 4, "h": 8, "i": 256, "j": 256, "d": 16}),
    ],
)
def test_mistakes_show_alike_in_what_a_sample_reads_and_in_whole_operands(name, sizes):
    work = operator(name, **sizes)
    sampled = Sample.of(work).drawn(1, Spread())
    assert any(sampled.places.values())
    whole = draw(work, 1)
    part = {}
    for operand in work.operands:
        part[operand.name] = whole[operand.name]
        for dimension, places in sampled.places[operand.name].items():
            part[operand.name] = part[operand.name].take(places, dimension)
    some = replace(sampled, inputs=part)
    every = replace(sampled, inputs=whole, places={o.name: {} for o in work.operands})
    assert list(some.coarse()) == list(every.coarse())
    for operand in work.operands:
        assert list(some.fine(operand)) == list(every.fine(operand))


def test_no_more_of_large_operands_is_drawn_than_a_sample_reads():
    work = operator("grouped_matmul", t=512, n=4096, k=2048, experts=64, dtype="bfloat16")
    sampled = Sample.of(work).drawn(1, Spread())
    assert sum(array.size for array in sampled.inputs.values()) < 1 << 21


@pytest.mark.parametrize("condition", ["isnan(x[r,c])", "isinf(x[r,c])", "not isfinite(x[r,c])"])
def test_what_is_no_number_may_be_replaced(condition):
    made = program(f"y[r] = sum[c](select({condition}, 0, x[r,c]))", r=6, c=40)
    assert sensitivity(made).share > 0


def test_rows_whose_remainders_decide_what_is_added_up_come_side_by_side():
    sizes = {"n": 1, "c": 64, "h": 64, "w": 64, "o": 64, "r": 3, "s": 3}
    layer = operator("conv2d_transposed", **sizes, stride=2, padding=1, output_padding=1)
    assert runs_of(layer) == {"p": 2, "q": 2, "r": 2, "s": 2}
    rows = sample(layer, 1 << 14, np.random.default_rng(20))
    assert rows is not None
    assert all(1 in np.diff(rows.which[axis]) for axis in ("p", "q"))
    assert sensitivity(layer).share > 0


@pytest.mark.parametrize("body", ["mean[e](x[col[e],c])", "max[e](x[col[e],c])"])
def test_entries_left_out_show_in_rows_of_which_few_are_looked_at(body):
    tables = "row: int32[e](sorted < r, skew=2.1); col: int32[e](index < r); where row[e] == r; "
    made = program(f"{tables}y[r,c] = {body}", r=17_000, e=96_000, c=128)
    assert sensitivity(made).share > 0


@pytest.mark.parametrize("name", ["selective", "decays that are summed up", "gated"])
def test_halves_of_a_state_are_left_out_of_states(name):
    made = program(TEXTS[name], **extents_of(name))
    inputs = draw(made, 0)
    mistakes = [m for m in program_sensitivity._coarse(made, reached(made, Rows())) if not m.zeros]
    assert {m.name for m in mistakes} > {"first half of s left out", "second half of s left out"}
    for mistake in mistakes:
        assert carried_linearly(mistake.program) is not None
        low, high = allowed(mistake.program, inputs)["y"]
        assert agrees(evaluate(mistake.program, inputs)["y"], low, high).all()
    assert mistakes_detected(made, inputs) == mistakes_planted(made)
