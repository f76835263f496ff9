"""Places of the greatest and the least score of a row, in one kernel with what else is asked."""

import numpy as np
import pytest

from tests.kernels import planted
from tests.spaces.cpu.chained.test_chain import outputs
from tests.spaces.cpu.chained.test_template import TARGET, complaints, computation, kernels
from tests.spaces.cpu.native import check_bugs_are_found, compile_kernels
from tilewright.spaces.registry import space_for

PRODUCT = "p[i,j] = sum[d](x[i,d] * u[d,j])\n"
FORMS = {
    "routing": PRODUCT + "y[i] = argmax[j](p[i,j])",
    "the least of squares": PRODUCT + "y[i] = argmin[j](p[i,j] * p[i,j])",
    "with its share": PRODUCT + "y[i] = argmax[j](p[i,j])\nm[i] = max[j](p[i,j])\n"
    "g[i] = 1 / sum[j](exp(p[i,j] - m[i]))\n-> y, g",
    "keys up to a row": "where j <= i + 3\n" + PRODUCT + "y[i] = argmax[j](p[i,j] + b[j])",
    "beside attention": PRODUCT + "y[i] = argmax[j](p[i,j])\n"
    "z[i,e] = sum[j](softmax[j](p[i,j]) * v[j,e])\n-> y, z",
}
LONG = {"i": 45, "j": 150}


@pytest.mark.parametrize("name", FORMS)
def test_places_agree_with_their_programs(name, tmp_path):
    w = computation(FORMS[name], **LONG)
    assert complaints(w, kernels(w, 4), tmp_path) == []


@pytest.mark.parametrize(
    ("value", "places", "wanted"),
    [
        (0.0, slice(None), 0),
        (100.0, [7, 40, 149], 7),
        (np.nan, [93, 149], 93),
        (-np.inf, slice(None), 0),
    ],
)
def test_the_first_of_equal_ones_is_found(value, places, wanted, tmp_path):
    """All equal, three equal ones in different tiles, NaN, and nothing above minus infinity."""
    w = computation("p[i,j] = sum[d](x[i,d] * u[d,j])\ny[i] = argmax[j](p[i,j] + b[j])", **LONG)
    inputs = w.make_inputs(0)
    inputs["x"][...] = 0
    inputs["b"][...] = 0
    inputs["b"][places] = value
    made = kernels(w, 6)
    library = compile_kernels(made, TARGET, tmp_path)
    for kernel in made:
        (found,) = outputs(kernel, library, w, inputs, np.int32)
        assert (found == wanted).all(), kernel.call.entry


ROW, KEY = np.indices((45, 150))
SEEN = {
    "j > i": KEY > ROW,
    "j > 3 * i + 40": KEY > 3 * ROW + 40,  # the last rows see none
    "(i + j) % 7 == 3": (ROW + KEY) % 7 == 3,
    "j >= 32": KEY >= 32,
}


@pytest.mark.parametrize("condition", SEEN)
def test_where_nothing_is_above_minus_infinity_it_is_the_first_key_that_is_seen(
    condition, tmp_path
):
    """Of those that it sees, wherever they begin; 0 of a row that sees none."""
    w = computation(f"where {condition}\n{PRODUCT}y[i] = argmax[j](p[i,j] + b[j])", **LONG)
    inputs = w.make_inputs(0)
    inputs["x"][...] = 0
    inputs["b"][...] = -np.inf
    wanted = SEEN[condition].argmax(axis=1)
    made = kernels(w, 6)
    library = compile_kernels(made, TARGET, tmp_path)
    for kernel in made:
        (found,) = outputs(kernel, library, w, inputs, np.int32)
        assert (found == wanted).all(), kernel.call.entry


BUGS = {
    "places of lanes": (r"tw_pick\((\w+), tw_ramp\(j0\), (\w+)\)", r"tw_pick(\1, tw_ramp(v0), \2)"),
    "a part's place alone": (r"if \(b0\[0\] .*\) place0", "place0"),
    "a place of no best": (r"tw_where\((\w+), c0\[0\]", r"tw_where(\1, \1[0]"),
}


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_found(name, tmp_path):
    w = computation("p[i,j] = sum[d](x[i,d] * u[d,j])\ny[i] = argmax[j](p[i,j] + b[j])", **LONG)
    inputs = w.make_inputs(0)
    inputs["b"][5] = 1e3
    inputs["x"][:, 0] = inputs["x"][:, 0] * (np.arange(45) % 2)
    space = space_for(w, TARGET)
    wanted = {"rows": 8, "keys": 64, "unroll": 1, "workers": 2, "key_layout": "panels", "splits": 1}
    schedule = next(
        s
        for s in space.enumerate()
        if s.template == "chained" and all(s.values[d] == v for d, v in wanted.items())
    )
    draws = [inputs, {**inputs, "b": inputs["b"] * 0}, {**inputs, "x": inputs["x"] * 0}]
    check_bugs_are_found(
        space.lower(schedule), {name: BUGS[name]}, w, TARGET, tmp_path, draws, count=0
    )


def test_a_kernel_that_takes_the_last_of_equal_ones_is_seen(tmp_path):
    """By places that are known: of sums whose rounding may differ, either place is allowed."""
    w = computation(FORMS["routing"], **LONG)
    inputs = w.make_inputs(0)
    inputs["x"][...] = 0
    right = kernels(w, 1)[0]
    wrong = planted(right, r"tw_above\((c0), (t0)\)", r"(\1 >= \2)", entry="wrong")
    library = compile_kernels([right, wrong], TARGET, tmp_path)
    for kernel in (right, wrong):
        (found,) = outputs(kernel, library, w, inputs, np.int32)
        assert (found == 0).all() == (kernel is right)


def test_routing_is_one_kernel():
    w = computation(FORMS["routing"], i=512, j=128, d=64)
    assert list(space_for(w, TARGET).templates) == ["chained"]
