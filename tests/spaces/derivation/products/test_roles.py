"""Roles of axes and places of operands, against what a direct evaluation of the program gives."""

from dataclasses import replace

import numpy as np
import pytest

from tests.spaces.derivation.contractions import FAMILIES, contracted, varies
from tilewright.spaces.algebra.index import index, variable
from tilewright.spaces.derivation.products.addresses import Bound
from tilewright.spaces.derivation.products.prologue import loads
from tilewright.spaces.derivation.products.roles import ROLES, Roles, roles_of
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate_stages
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.named import operator


def derived(made):
    found = roles_of(made, next(s for s in reversed(made.stages) if s.reducer))
    return found


def error(made, found, factors, values):
    """The largest difference of the stage from its direct evaluation."""
    stages = evaluate_stages(made, values)
    result = contracted(made, found, factors, stages)
    return np.abs(result - stages[found.stage.name]).max()


@pytest.mark.parametrize("seed", range(8))
@pytest.mark.parametrize("family", FAMILIES)
def test_a_sum_of_products_is_a_batch_of_products_of_matrices(family, seed):
    made = FAMILIES[family](np.random.default_rng(seed))
    found = derived(made)
    if isinstance(found, str):
        pytest.fail(f"{made}\n{found}")
    factors = loads(made, found)
    assert error(made, found, factors, draw(made, seed)) < 1e-12


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("family", FAMILIES)
def test_roles_are_those_that_trying_all_points_gives(family, seed):
    made = FAMILIES[family](np.random.default_rng(seed))
    found, values = derived(made), draw(made, seed)
    stages = evaluate_stages(made, values)
    for role in ROLES:
        for part in getattr(found, role):
            if part.extent > 1 and not found.indexing.splits[part.axis].uneven:
                left, right = (
                    varies(made, found, side, part.name, stages)
                    for side in (found.left, found.right)
                )
                wanted = {(1, 0): "rows", (0, 1): "columns"}.get((left, right), "batch")
                assert role == (wanted if part.axis in found.stage.axes else "depth"), part


NAMED = {
    "matmul": "m=3 n=4 k=5 a=col c=col epilogue=relu(x+bias[n])",
    "bmm": "batch=4 m=2 n=3 k=5 shared=2",
    "grouped_matmul": "t=9 n=3 k=4 experts=4 rows=5",
    "conv1d": "n=2 c=4 w=9 o=6 r=3 stride=2 padding=1 groups=2",
    "conv2d": "n=2 c=3 h=7 w=6 o=4 r=3 s=2 dilation=2 padding=2 layout=NHWC",
    "rmsnorm_matmul": "m=3 n=4 k=5",
    "gated_matmul": "m=3 n=4 k=5",
    "attention": "b=1 h=4 i=3 j=6 d=2 kv=2 mask=causal softcap=3 alibi=1",
}


@pytest.mark.parametrize("name", NAMED)
def test_each_product_of_a_named_operator_is_one_of_matrices(name):
    made = operator(name, **dict(word.split("=") for word in NAMED[name].split()))
    values = {
        n: a.astype(np.float64) if a.dtype.kind == "f" else a for n, a in draw(made, 1).items()
    }
    found = [roles_of(made, stage) for stage in made.stages if "*" in str(stage.body)]
    products = [c for c in found if isinstance(c, Roles)]
    assert products
    for product in products:
        assert error(made, product, loads(made, product), values) < 1e-12


def test_grouped_heads_stack_as_rows_of_one_batch():
    made = program("y[b,h,i,j] = sum[d](q[b,h,i,d] * k[b,h//4,j,d])", b=2, h=8, i=5, j=7, d=3)
    found = derived(made)
    assert [found.role(name) for name in ROLES] == [("b", "h//4"), ("h%4", "i"), ("j",), ("d",)]
    left, right = loads(made, found)
    assert left.plain
    assert right.plain
    assert [place.step(found.rows) for place in (*left.places, *right.places)] == [3, 0]
    assert right.places[0].step(found.batch) == 21


def test_experts_are_a_batch_of_the_rows_that_a_sorted_table_gives_them():
    text = "e: int32[t](sorted < 4)\ny[t,n] = sum[k](a[t,k] * w[e[t],k,n])\nw: float32[4,8,5]"
    made = program(text.replace("[t](", "[10]("), t=10, n=5, k=8)
    found = derived(made)
    roles = [found.role(name) for name in ROLES]
    assert roles == [("e[t]",), ("t of e[t]",), ("n",), ("k",)]
    left, right = loads(made, found)
    assert [right.places[0].step(getattr(found, name)) for name in ROLES] == [40, 0, 1, 5]
    assert left.places[0].step(found.rows) == 8


def test_a_step_is_none_where_a_role_is_gathered():
    made = program(
        "x: float32[2,3,9,9]\ny[n,o,p,q] = sum[c,r,s](x[n,c,p+r,q+s] * w[o,c,r,s])",
        **{"n": 2, "o": 4, "p": 7, "q": 7, "c": 3, "r": 3, "s": 3},
    )
    found = derived(made)
    weights, pixels = loads(made, found)
    assert (found.role("rows"), found.role("columns")) == (("o",), ("n", "p", "q"))
    assert [weights.places[0].step(part) for part in (found.rows, found.depth)] == [27, 1]
    assert [pixels.places[0].step(part) for part in (found.columns, found.depth)] == [None, None]
    assert pixels.places[0].step([p for p in found.columns if p.name == "q"]) == 1


def test_factors_of_a_row_leave_the_sum_and_what_is_computed_of_elements_is_a_prologue():
    made = program(
        "z[m,k] = x[m,k] * rsqrt(mean[k](x[m,k] * x[m,k])) * g[k]\n"
        "y[m,n] = sum[k](z[m,k] * w[k,n])",
        m=3,
        n=4,
        k=5,
    )
    found = derived(made)
    assert str(found.left) == "x[m, k] * g[k]"
    assert str(found.leaving) == "rsqrt(z_sum[m] / z_count)"
    left, right = loads(made, found)
    assert not left.plain
    assert right.plain


REFUSALS = {
    "y[m] = max[k](a[m,k] * b[k])": "y reduces by max, not a sum",
    "y[m] = sum[k](a[m,k] * a[m,k])": "one factor",
    "y[m] = sum[k](a[m,k])": "one factor",
    "y[m,n] = sum[k](a[m,k] + b[k,n])": "one factor",
    "y[m,n,l] = sum[k](a[m,k] * b[k,n] * c[k,l])": "3 factors of different axes",
    "y[m,n] = a[m,n]": "y is a map, not a sum",
}


@pytest.mark.parametrize("text", REFUSALS)
def test_what_is_no_product_of_two_factors_is_refused_in_words(text):
    made = program(text, **{a: 3 for a in "mnkl" if f"{a}" in text.replace("max", "")})
    assert REFUSALS[text] in roles_of(made, made.stage["y"])


def test_an_index_that_mixes_row_and_depth_is_said_to():
    made = program(
        "x: float32[8]\ny[p,o] = sum[r](x[(p + r) // 2] * w[o,r])", **{"p": 4, "o": 3, "r": 3}
    )
    obstacles = [load.obstacle for load in loads(made, derived(made))]
    assert None in obstacles
    assert any("which mixes p and r" in o for o in obstacles if o)


# -- planted bugs ------------------------------------------------------------------------------


CONVOLUTION = program(
    """
    x: float64[2, 6, 7, 7]
    y[n,o,p,q] = sum[c,r,s](inside(x[n, o//2*2 + c, p + 2*r - 2, 2*q + s - 1], 0) * w[o,c,r,s])
    """,
    dtype="float64",
    **{"n": 2, "o": 6, "p": 7, "q": 4, "c": 2, "r": 3, "s": 3},
)


def offset_by(atom, amount):
    """The input is read further along by so much for each step of an axis, or always."""
    change = variable(atom) * amount if atom else index(amount)

    def changed(place):
        return replace(place, offset=place.offset + change)

    return changed


def bound_by(number, **change):
    """One bound has another index or extent."""

    def changed(place):
        bounds = list(place.bounds)
        by, extent = change.get("index", 0), change.get("extent", 0)
        atom = change.get("atom")
        further = variable(atom) * by if atom else index(by)
        old = bounds[number]
        bounds[number] = Bound(old.index + further, old.extent + extent)
        return replace(place, bounds=tuple(bounds))

    return changed


def without_bound(number):
    def changed(place):
        return replace(place, bounds=place.bounds[:number] + place.bounds[number + 1 :])

    return changed


def batch_for_row(found):
    return replace(found, batch=found.rows, rows=found.batch)


def batch_for_column(found):
    kept = [*found.batch, *found.columns]
    return replace(found, batch=tuple(kept[1:]), columns=tuple(kept[:1]))


WRONG_PLACES = {
    "one before": offset_by(None, -1),
    "one behind": offset_by(None, 1),
    "a row of pixels off": offset_by(None, 7),
    "the dilation for the stride": offset_by("p", 7),
    "the dilation is forgotten": offset_by("r", -7),
    "the stride is forgotten": offset_by("q", -1),
    "a channel's step is a row's": offset_by("c", 7 - 49),
    "the group's channels overlap": offset_by("o//2", -49),
    "the top border one late": bound_by(0, index=-1),
    "the top border one early": bound_by(0, index=1),
    "the bottom border one late": bound_by(0, extent=1),
    "the bottom border one early": bound_by(0, extent=-1),
    "the left border one late": bound_by(1, index=-1),
    "the right border one late": bound_by(1, extent=1),
    "the right border one early": bound_by(1, extent=-1),
    "the left border one early": bound_by(1, index=1),
    "the stride missing in a bound": bound_by(1, atom="q", index=-1),
    "the dilation missing in a bound": bound_by(0, atom="r", index=-1),
    "rows unbounded": without_bound(0),
    "columns unbounded": without_bound(1),
}
WRONG_ROLES = {"batch for row": batch_for_row, "batch for column": batch_for_column}


@pytest.mark.parametrize("bug", [None, *WRONG_PLACES])
def test_a_planted_bug_in_a_place_is_found(bug):
    found, values = derived(CONVOLUTION), draw(CONVOLUTION, 0)
    weights, pixels = loads(CONVOLUTION, found)
    if bug:
        (place,) = pixels.places
        pixels = replace(pixels, places=(WRONG_PLACES[bug](place),))
    difference = error(CONVOLUTION, found, (weights, pixels), values)
    assert (difference < 1e-12) == (bug is None)


@pytest.mark.parametrize("bug", WRONG_ROLES)
def test_a_planted_bug_in_roles_is_found(bug):
    found, values = derived(CONVOLUTION), draw(CONVOLUTION, 0)
    wrong = WRONG_ROLES[bug](found)
    with pytest.raises((KeyError, AssertionError, ValueError)):
        assert error(CONVOLUTION, wrong, loads(CONVOLUTION, wrong), values) < 1e-12
