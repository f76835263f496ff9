"""Maps as loop nests: what they compute, and that names and writing leave no trace in them."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.derivation.maps.random_maps import random_map
from tests.spaces.indices import value_of
from tilewright.spaces.derivation.maps.view import Access, MapView, map_of
from tilewright.spaces.derivation.points import Points
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.evaluation import OPERATIONS, evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.language.tree import Comparison, Expression
from tilewright.spaces.named import operator


def walked(view: MapView, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """The outputs, with every element where the view says that it is."""
    grid = np.meshgrid(*(np.arange(loop.extent) for loop in view.loops), indexing="ij")
    axes = {loop.name: values for loop, values in zip(view.loops, grid, strict=True)}
    memory = {o.name: in_memory(o, inputs[o.name]) for o in view.program.operands}
    found = {}
    for access, value in zip(view.outputs, view.values, strict=True):
        flat = np.full(access.array.size, np.nan)
        flat[value_of(access.offset, axes, inputs)] = computed(view, value, axes, inputs, memory)
        order = access.array.order
        found[access.array.name] = flat.reshape([access.array.shape[d] for d in order]).transpose(
            np.argsort(order)
        )
    return found


def in_memory(array, values: np.ndarray) -> np.ndarray:
    return np.asarray(values, float).transpose(array.order).reshape(-1)


def computed(view: MapView, node: Expression, axes, inputs, memory) -> np.ndarray:
    """A value at all points of the loops."""
    if node in view.wholes:
        whole = value_of(view.wholes[node], axes, inputs)
        return OPERATIONS[node.operator](whole, 0) if isinstance(node, Comparison) else whole
    if node in view.reads:
        access = view.reads[node]
        return memory[access.array.name][value_of(access.offset, axes, inputs)]

    def known(inner: Expression) -> np.ndarray | None:
        return None if inner is node else computed(view, inner, axes, inputs, memory)

    return np.asarray(node.fold(Points({}, {}), known), float)


@pytest.mark.parametrize("seed", range(60))
def test_random_maps_have_their_elements_where_the_view_says(seed: int) -> None:
    made = random_map(seed, elements=3000)
    inputs = draw(made, seed)
    expected = evaluate(made, inputs)
    found = walked(map_of(made), inputs)
    for name, values in expected.items():
        np.testing.assert_allclose(found[name], values, rtol=1e-12)


def extents(view: MapView) -> list[int]:
    return [loop.extent for loop in view.loops]


def steps(view: MapView, access: Access) -> list[int | None]:
    return [access.step(loop.name) for loop in view.loops]


def test_axes_in_one_go_are_one_loop_in_the_order_of_the_output() -> None:
    view = map_of(program("y[a, c, b, d] = x[a, b, c, d]", a=3, b=4, c=5, d=6))
    assert extents(view) == [3, 5, 4, 6]
    (read,) = view.loaded
    assert steps(view, read) == [120, 6, 30, 1]
    assert extents(map_of(program("y[a, b, c] = 2 * x[a, b, c]", a=3, b=4, c=5))) == [60]
    assert extents(map_of(program("y[a, b, c] = x[a, b, c] + v[c]", a=3, b=4, c=5))) == [12, 5]
    assert extents(map_of(program("y[a] = x[a]", a=1))) == [1]


def test_halves_that_are_turned_are_loops_of_their_own() -> None:
    view = map_of(operator("rope", b=2, t=8, h=4, d=128))
    assert extents(view) == [2, 8, 4, 2, 64]
    assert [access.step("a4") for access in view.loaded] == [1, 1, 1, 1]
    turned = [access for access in view.loaded if access.step("a3") is None]
    assert [access.array.name for access in turned] == ["x"]


def test_gathered_rows_have_no_step() -> None:
    view = map_of(operator("embedding", t=16, d=64, words=100))
    (read,) = view.loaded
    assert steps(view, read) == [None, 1]
    assert view.contiguous(read) == "a1"


def test_names_and_writing_leave_no_trace() -> None:
    first = map_of(program("y[i, j] = relu(x[j, i] + b[i])", i=5, j=7))
    other = map_of(program("v[q, p] = relu(c[q] + u[p, q])", p=7, q=5))
    assert first.loops == other.loops
    assert {a.offset for a in first.loaded} == {a.offset for a in other.loaded}
    order = "y: float32(order=(1, 0)); y[j, i] = relu(x[j, i] + b[i])"
    assert map_of(program(order, i=5, j=7)).loops == first.loops


@pytest.mark.parametrize(
    ("made", "words"),
    [
        (program("y[i] = sum[j](x[i, j])", i=3, j=4), "reduced by sum"),
        (program("y[i] = x[i]; z[j] = v[j]; -> y, z", i=3, j=4), "along the same axes"),
        (program("x: float32[3]; y[i] = inside(x[i - 1], 0)", i=3), "leaves x"),
    ],
)
def test_what_is_no_map_is_refused_in_words(made: Program, words: str) -> None:
    with pytest.raises(InputError, match=words):
        map_of(made)
