"""Views of programs find what they carry along positions: decays, and factors of sums."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tests.spaces.recurrent_programs import TEXTS, extents_of
from tilewright.spaces.derivation.recurrent.view import carried, recurrence_of
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.work import work
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.inputs import draw

DECAYS = {
    "linear attention": None,
    "retention": ("-g[h]", "0", "0"),
    "state space": ("0", "-l[h, t]", "l[h, t]"),
    "decays that are summed up": ("a[h, t]", "0", "0"),
    "selective": ("dt[e, t] * a[e, d]", "0", "0"),
    "behind": ("-g[h]", "0", "0"),
}


def made_of(name):
    return program(TEXTS[name], **extents_of(name))


@pytest.mark.parametrize(("name", "decay"), DECAYS.items(), ids=DECAYS)
def test_decays_grow_by_what_does_not_cancel(name, decay):
    found = recurrence_of(made_of(name)).decay
    assert (found and tuple(map(str, found.expressions))) == decay


C = "c[h, t] = sum[s: s <= t](a[h, s])\n"
EXPONENTS = {
    "l[h, t] - l[h, s] + g[e] * (s - t)": ("-g[e]", "-l[h, t]", "l[h, t]"),
    "c[h, t] - c[h, s] + i[h, s] - m[h, t]": ("a[h, t]", "i[h, t]", "-m[h, t]"),
    "2 * (c[h, t] - c[h, s]) - g[e] * (t - s)": ("2 * a[h, t] - g[e]", "0", "0"),
    "l[h, t] + c[h, t] - c[h, s]": ("a[h, t]", "0", "l[h, t]"),
}


@pytest.mark.parametrize(("exponent", "decay"), EXPONENTS.items(), ids=EXPONENTS)
def test_parts_of_exponents_grow_by_themselves(exponent, decay):
    text = C * ("c[" in exponent)
    text += f"y[h, t, e] = sum[s: s <= t](exp({exponent}) * v[h, s, e])"
    found = recurrence_of(program(text, h=2, t=9, s=9, e=20)).decay
    assert found is not None
    assert tuple(map(str, found.expressions)) == decay


SUMMED = "y[h, t, e] = sum[s: s <= t](exp(c[h, t] - c[h, s]) * v[h, s, e])"


@pytest.mark.parametrize(
    "text",
    [
        "c[h, t] = sum[r: r <= t](a[h, r])\n" + SUMMED,
        "c[h, t] = sum[r: r >= t](a[h, r])\n" + SUMMED.replace("<=", ">="),
        "c[n, t] = sum[s: s <= t](a[n, s])\n"
        + SUMMED.replace("c[h, t] - c[h, s]", "c[t, t] - c[s, s]"),
    ],
    ids=["fewer terms", "fewer terms behind", "another sum at each position"],
)
def test_running_sums_without_a_term_at_each_position_are_no_decays(text):
    extents = {"h": 2, "t": 9, "s": 9, "r": 5, "n": 9, "e": 20}
    made = program(text, **{a: n for a, n in extents.items() if re.search(rf"\b{a}\b", text)})
    with pytest.raises(InputError, match="computed, and not carried"):
        recurrence_of(made)


def test_sums_within_terms_are_over_inner_axes_of_the_state():
    found = recurrence_of(made_of("state space"))
    assert (found.rows, found.inner, found.lane) == (("h",), ("d",), "e")
    assert [str(factor) for factor in found.read] == ["c[t, d]"]
    assert {"b[t, d]", "dt[h, t]", "x[h, t, e]"} < {str(factor) for factor in found.added}


@pytest.mark.parametrize("name", TEXTS)
def test_work_is_linear_in_positions(name):
    few, many = (
        work(program(TEXTS[name], **extents_of(name, t=n, s=n))) for n in (1 << 10, 1 << 14)
    )
    found = recurrence_of(made_of(name))
    axes = (*found.rows, *found.inner, found.lane)
    assert few.flops == 4 * found.extent(*axes) << 10
    assert (many.flops, many.arithmetic) == (16 * few.flops, 16 * few.arithmetic)
    assert many.special in (few.special, 16 * few.special)  # decays may be alike for all


def test_infinite_terms_allow_anything_where_they_count_alone():
    made = made_of("state space")
    assert carried(made) == "y"
    inputs = draw(made, 0)
    inputs["x"][0, 20, 3] = np.inf
    low, high = allowed(made, inputs)["y"]
    free = np.isnan(low) | np.isnan(high) | ~(low <= high)
    wide = free | ((low == -np.inf) & (high == np.inf))
    assert wide[0, 20:, 3].all()
    others = np.ones(low.shape, bool)
    others[0, 20:, 3] = False
    assert not wide[others].any()
