"""Programs seen as products of placed operands, against what a direct evaluation gives."""

import numpy as np
import pytest

from tests.spaces.derivation.contractions import convolution, in_memory
from tests.spaces.indices import value_of
from tilewright.spaces.derivation.points import Points
from tilewright.spaces.derivation.products.view import extent, placed_product_of
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.served import workload_of

SERVED = {
    "sequence": "conv1d n=2 c=3 w=11 o=5 r=3 stride=2 padding=1",
    "sequence_channels_last": "conv1d n=2 c=4 w=11 o=6 r=3 dilation=2 groups=2 layout=NWC",
    "image": "conv2d n=2 c=3 h=7 w=6 o=4 r=3 s=2 padding=2 stride=2",
    "image_channels_last": "conv2d n=1 c=3 h=7 w=9 o=4 r=3 s=3 padding=1 dilation=2 layout=NHWC",
    "groups": "conv2d n=2 c=6 h=5 w=5 o=4 r=3 s=3 padding=1 groups=2",
    "fused": 'conv2d n=2 c=3 h=5 w=5 o=4 r=3 s=3 padding=1 epilogue="relu(x + b[o]) + z[n,o,p,q]"',
    "depthwise": "conv2d n=2 c=3 h=5 w=6 o=3 r=3 s=3 padding=1 groups=3",
    "own": '"x: float32[9]; y[i,j] = sum[k](inside(x[i+2*k-1], 5) * f[k,j]) * g[i]" i=5 j=4 k=3',
}


def computed(view, values):
    """The output, element by element from the places of a view."""
    parts = (*view.batch, *view.rows, *view.columns, *view.depth)
    box = {
        part.name: np.arange(part.extent).reshape([-1 if d == i else 1 for d in range(len(parts))])
        for i, part in enumerate(parts)
    }
    depth = tuple(range(len(parts) - len(view.depth), len(parts)))
    terms = read(view, view.left.place, box, values) * read(view, view.right.place, box, values)
    terms = np.broadcast_to(terms, [part.extent for part in parts])
    arrays = {view.sum.name: terms.sum(axis=depth, keepdims=True)}
    named = {view.sum: view.sum}
    for number, (node, place) in enumerate(view.places.items()):
        arrays[f"read {number}"] = read(view, place, box, values)
        named[node] = type(node)(f"read {number}", ())
    result = np.full(view.output.size, np.nan)
    value = Points(arrays, {}).value(replaced(view.value, named))
    value = np.broadcast_to(value, arrays[view.sum.name].shape)
    offset = np.broadcast_to(value_of(view.offset, box), value.shape)
    result[offset] = value
    return result


def replaced(node, named):
    if node in named:
        return named[node]
    return node.with_children(tuple(replaced(child, named) for child in node.children))


def read(view, place, box, values):
    memory = in_memory(view.program, place.name, values[place.name])
    offset, inside = value_of(place.offset, box), np.asarray(True)
    for bound in place.bounds:
        index = value_of(bound.index, box)
        inside = inside & (index >= 0) & (index < bound.extent)
    element = memory[np.clip(offset, 0, len(memory) - 1)]
    return element if place.outside is None else np.where(inside, element, place.outside)


def difference(made):
    """Of what a view gives from what the program does."""
    view = placed_product_of(made)
    assert not isinstance(view, str), view
    values = {name: np.float64(x) for name, x in draw(made.program, 0).items()}
    (wanted,) = evaluate(made.program, values).values()
    flat = in_memory_of_output(view.output, np.asarray(wanted, np.float64))
    return np.abs(computed(view, values) - flat).max()


def in_memory_of_output(output, values):
    flat = np.empty(output.size)
    steps = zip(np.indices(output.shape), output.strides, strict=True)
    flat[sum(index * stride for index, stride in steps)] = values
    return flat


@pytest.mark.parametrize("text", SERVED.values(), ids=SERVED)
def test_places_give_what_the_program_computes(text):
    assert difference(workload(text)) < 1e-5


@pytest.mark.parametrize("seed", range(12))
def test_places_of_random_convolutions_give_what_they_compute(seed):
    made = workload_of(convolution(np.random.default_rng(seed)))
    view = placed_product_of(made)
    if isinstance(view, str):  # one element a window is a product of matrices, or has no columns
        assert "matrices" in view or "fastest axis" in view
    else:
        assert difference(made) < 1e-12


def test_roles_of_an_image_follow_the_output():
    nchw = placed_product_of(workload("conv2d n=2 c=8 h=9 w=9 o=4 r=3 s=3 padding=1 groups=2"))
    names = [[part.name for part in role] for role in (nchw.batch, nchw.rows, nchw.columns)]
    assert names == [["o//2"], ["o%2"], ["n", "p", "q"]]
    assert (nchw.left.operand.name, extent(nchw.columns), extent(nchw.depth)) == ("filter", 162, 36)
    nhwc = placed_product_of(workload("conv2d n=2 c=8 h=9 w=9 o=4 r=3 s=3 layout=NHWC padding=1"))
    names = [[part.name for part in role] for role in (nhwc.rows, nhwc.columns, nhwc.depth)]
    assert names == [["n", "p", "q"], ["o"], ["r", "s", "c"]]
    assert [index.formula for index in nhwc.left.indices] == ["n", "p + r - 1", "q + s - 1", "c"]


REFUSED = {
    "y[i,j] = x[i,j] / sum[k](x[i,k] * x[k,j]) + max[k](x[k,i])": "reductions: ",
    "y[i] = sum[k](x[i,k])": "one factor",
    "y[i,j] = sum[k](x[i,k] * f[k,j])": "product of matrices",
    "x: float32[4, 5]; y[i,j] = sum[k](inside(x[i+k, j], 0) * f[k,j])": "the fastest axis of y",
    "y[i,j] = sum[k](exp(x[i,k]) * f[k,j])": "operands as they are",
    "y[i,j] = sum[k](x[(i + k) // 2, k] * f[k,j])": "mixes i and k",
    "y[i,j] = sum[k](x[(2*i + 1) // 3, k] * f[k,j])": "needs sums of multiples",
    "x: float32[4]; y[i,j] = sum[k](inside(x[i+k], 0) * f[k,j]) + j": "the value of the axis j",
    "y[j] = max[i](sum[k](x[i+k] * f[k,j]))": "one sum of products",
    "where k <= i; y[i,j] = sum[k](x[i+k] * f[k,j])": "without conditions",
    "e: int8[4](index < 3); y[i,j] = sum[k](x[e[i],k] * f[k,j])": "e is int8, and chooses rows",
}


@pytest.mark.parametrize("text", REFUSED)
def test_what_is_no_placed_product_says_why(text):
    extents = {
        axis: n
        for axis, n in {"i": 4, "j": 5, "k": 3}.items()
        if f"{axis}," in text or f"{axis}]" in text
    }
    reason = placed_product_of(workload(text, **extents))
    assert isinstance(reason, str)
    assert REFUSED[text] in reason
    assert "\n" not in reason


def test_a_program_is_looked_at_once():
    made = workload(SERVED["fused"])
    assert placed_product_of(made) is placed_product_of(workload(SERVED["fused"]))
    renamed = program(made.program.text.replace("filter", "other"))
    assert placed_product_of(workload_of(renamed)).left.operand.name == "other"
