"""Programs as a product, a chain over its columns and products of what that gives."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.chained_programs import FORMS, form, made, random_form
from tests.spaces.indices import value_of
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.derivation.points import Points


def chained(name: str) -> Chained:
    found = chained_of(form(name))
    assert isinstance(found, Chained), found
    return found


def names(parts) -> list[str]:
    return [part.name for part in parts]


@pytest.mark.parametrize("name", FORMS)
def test_every_form_is_chained(name):
    assert isinstance(chained_of(form(name)), Chained)


def test_heads_that_share_keys_are_rows_of_one_product():
    found = chained("grouped heads")
    assert names(found.batch) == ["b", "h//2"]
    assert names(found.rows) == ["h%2", "i"]
    assert (found.key.name, found.depth.name, found.width.name) == ("j", "d", "e")
    assert [str(r.reducer) for r in found.scalars] == ["max", "sum"]
    assert [str(w.matrix) for w in found.weighings] == ["v[b, h // 2, j, e]"]


def test_heads_with_values_of_their_own_are_products_of_their_own():
    found = chained("values of each head")
    assert names(found.batch) == ["b", "h//2", "h%2"]
    assert names(found.rows) == ["i"]


def test_pages_are_entries_of_one_axis_of_keys():
    found = chained("pages")
    assert found.key.extent == 53
    assert found.in_place(found.right) is None
    assert chained("causal").in_place(chained("causal").right) == chained("causal").right


@pytest.mark.parametrize("name", ["causal", "window at both ends", "lengths and causal", "strided"])
def test_bounds_and_conditions_are_those_of_the_program(name):
    """A key counts where no form is negative and the other conditions hold."""
    check_bounds(form(name))


@pytest.mark.parametrize("seed", range(40))
def test_bounds_of_random_forms_are_those_of_the_program(seed):
    check_bounds(random_form(seed))


def check_bounds(program) -> None:
    found = chained_of(program)
    if isinstance(found, str):
        return
    draw = np.random.default_rng(0)
    tables = {o.name: draw.integers(0, o.drawn.below, o.shape) for o in program.operands if o.drawn}
    sizes = [program.extent[a] for a in "bhij" if a in program.extent]
    grid = np.meshgrid(*map(np.arange, sizes), indexing="ij")
    axes = dict(zip((a for a in "bhij" if a in program.extent), grid, strict=True))
    parts = dict(axes)
    for part in (*found.batch, *found.rows):
        if "//" in part.name or "%" in part.name:
            operator, divisor = ("//", part.name.split("//")[1]) if "//" in part.name else (
                "%", part.name.split("%")[1])  # fmt: skip
            whole = axes[part.axis]
            parts[part.name] = whole // int(divisor) if operator == "//" else whole % int(divisor)
    inside = np.ones(grid[0].shape, bool)
    for index in found.bounds:
        inside &= value_of(index, parts, tables) >= 0
    points = Points(tables, axes)
    for condition in found.conditions:
        inside &= points.value(condition)
    expected = np.ones(grid[0].shape, bool)
    for condition in program.conditions:
        expected &= points.value(condition)
    np.testing.assert_array_equal(inside, expected)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("y[i,j] = sum[d](x[i,d] * u[d,j])", "needs a product and a chain"),
        (
            "p[i,j] = sum[d](x[i,d] * u[d,j])\ny[j] = sum[i](exp(p[i,j]))",
            "needs one axis, its last",
        ),
        ("p[i,j] = max[d](x[i,d] * u[d,j])\ny[i] = sum[j](p[i,j])", "reduces by max"),
        (
            "u: float32[24, 53]\np[i,j] = sum[d](x[i,d] * inside(u[d,j + 3], 0))\n"
            "y[i] = sum[j](exp(p[i,j]))",
            "may leave its array",
        ),
        (
            "p[i,j] = sum[d](x[i,d] * u[d,j])\na[i] = argmax[j](p[i,j])\ny[i,e] = v[a[i],e]",
            "v[a[i], e] is read at a[i], which is computed",
        ),
    ],
)
def test_what_is_no_such_program_is_refused_in_words(text, words):
    found = chained_of(made(text))
    assert isinstance(found, str)
    assert words in found
