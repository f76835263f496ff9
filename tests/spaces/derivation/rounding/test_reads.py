"""Rows of a program need no more of its operands than the places that they read."""

import numpy as np
import pytest

from tests.spaces.derivation.rounding.test_rows import programs
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.rounding.reads import places_read
from tilewright.spaces.derivation.rounding.rows import Rows, row_axes
from tilewright.spaces.language import program
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.named import operator


def cut(array, places):
    for dimension, at in places.items():
        array = array.take(at, dimension)
    return array


@pytest.mark.parametrize(("name", "work"), list(programs()), ids=lambda value: str(value)[:20])
def test_bounds_are_the_same_of_what_is_read_alone(name, work):
    inputs, extents = draw(work, 3), work.extent
    for axes in (row_axes(work)[:1], row_axes(work), ()):
        rows = Rows({a: np.unique([0, extents[a] // 2, extents[a] - 1]) for a in axes})
        known = places_read(work, rows)
        part = {o.name: cut(inputs[o.name], known[o.name]) for o in work.operands}
        whole, found = allowed(work, inputs, rows), allowed(work, part, rows, known=known)
        for output in work.outputs:
            for one, other in zip(whole[output.name], found[output.name], strict=True):
                np.testing.assert_array_equal(one, other)


def test_few_entries_of_large_operands_are_read():
    work = operator("grouped_matmul", t=512, n=4096, k=2048, experts=64)
    known = places_read(work, Rows({"t": np.array([3, 7]), "n": np.array([5])}))
    assert {name: set(places) for name, places in known.items()} == {
        "expert": {0},
        "A": {0},
        "B": {2},
    }
    assert known["A"][0].tolist() == [3, 7]
    assert known["B"][2].tolist() == [5]


def test_places_beyond_a_border_are_the_nearest_within():
    work = program("y[r] = inside(x[2 * r - 3], 1) + x[r // 4]\nx: float32[20]", r=12)
    known = places_read(work, Rows({"r": np.array([0, 8, 11])}))
    assert known["x"][0].tolist() == [0, 2, 13, 19]
