"""Products of packed factors compute what they computed of the factors as they lie."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.derivation.products.packing import packed
from tilewright.spaces.derivation.products.view import placed_product_in
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.operators import workload

PACKED = {
    "conv2d n=2 c=5 h=7 w=6 o=3 r=3 s=2 padding=1 stride=2": ["filter_packed", "image_packed"],
    'conv2d n=2 c=5 h=4 w=4 o=3 r=1 s=1 epilogue="x + z[n, o, p, q]"': ["image_packed"],
    '"y[n, o, p] = sum[c, r](x[n, c, p + r] * f[o, r, c])" n=2 o=3 p=4 c=5 r=3': ["x_packed"],
}
NOT = {
    "conv2d n=2 c=5 h=7 w=6 o=4 r=3 s=3 layout=NHWC": "are neighbours along c",
    "conv2d n=2 c=4 h=7 w=6 o=4 r=3 s=3 groups=2": "no part of the depth",
    '"f_packed: float32[4]; y[n, o, p] = f_packed[o] * sum[c, r](x[n, c, p + r] * f[o, c, r])" '
    "n=2 o=4 p=4 c=5 r=3": "names of the program's own",
}


def packing(text):
    found = placed_product_in(workload(text).program)
    assert not isinstance(found, str)
    return packed(found)


@pytest.mark.parametrize("text", PACKED)
def test_copies_and_their_product_compute_the_program(text):
    whole = workload(text).program
    programs = packing(text)
    assert [each.outputs[0].name for each in programs[:-1]] == PACKED[text]
    inputs = draw(whole, 1)
    (expected,) = evaluate(whole, inputs).values()
    given = dict(inputs)
    for each in programs:
        assert program(str(each)) == each
        given |= evaluate(each, given)
    np.testing.assert_allclose(given[whole.outputs[0].name], expected, rtol=1e-9)


@pytest.mark.parametrize(("text", "reason"), NOT.items())
def test_why_nothing_is_packed(text, reason):
    assert reason in str(packing(text))
