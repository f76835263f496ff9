"""Bugs planted in the indices of operators: each is refused, or its result differs."""

import numpy as np
import pytest

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.named import operator

CONVOLUTION = operator(
    "conv2d", n=3, c=4, h=9, w=9, o=6, r=3, s=3, stride=2, padding=2, dilation=2, groups=2
)
HEADS = operator("attention", b=2, h=4, i=5, j=8, d=3, kv=2, mask="causal", window=3)
GROUPS = operator("grouped_matmul", t=9, n=4, k=3, experts=5, rows=6)
POOL = operator("max_pool2d", n=2, c=3, h=9, w=9, r=3, stride=2, padding=1)

PLANTED = {
    "the upper border one further": (CONVOLUTION, "2 * p + 2 * r - 2", "2 * p + 2 * r - 1"),
    "the left border one further": (CONVOLUTION, "2 * q + 2 * s - 2", "2 * q + 2 * s - 3"),
    "no border": (CONVOLUTION, "2 * p + 2 * r - 2", "2 * p + 2 * r"),
    "a stride for a dilation": (CONVOLUTION, "2 * p + 2 * r", "2 * p + 1 * r"),
    "a dilation for a stride": (CONVOLUTION, "2 * q + 2 * s", "1 * q + 2 * s"),
    "rows for columns": (CONVOLUTION, "2 * p + 2 * r", "2 * q + 2 * r"),
    "a tap for another": (CONVOLUTION, "2 * p + 2 * r", "2 * p + 2 * s"),
    "the group's size for its number": (CONVOLUTION, "o // 3 * 2", "o // 2 * 2"),
    "the channel without its group": (CONVOLUTION, "o // 3 * 2 + c", "c"),
    "the value outside": (POOL, "-inf", "0"),
    "one tap fewer": (POOL, "r=3", "r=2"),
    "an image for another": (POOL, "x[n, c,", "x[1 - n, c,"),
    "keys of the next head": (HEADS, "h // 2, j, d", "h % 2, j, d"),
    "values of the first head": (HEADS, "h // 2, j, e", "0, j, e"),
    "the present hidden": (HEADS, "j <= i + 3", "j < i + 3"),
    "the future seen": (HEADS, "j <= i + 3", "j <= i + 4"),
    "the window one wider": (HEADS, "- j < 3", "- j < 4"),
    "the past forgotten": (HEADS, "j <= i + 3", "j <= i"),
    "batch for row": (GROUPS, "A[row[t], k]", "A[expert[t], k]"),
    "the row not gathered": (GROUPS, "A[row[t], k]", "A[t % 6, k]"),
    "the expert of another row": (GROUPS, "B[expert[t], k, n]", "B[expert[t] // 2, k, n]"),
}


@pytest.mark.parametrize("name", PLANTED)
def test_a_planted_bug_is_found(name: str) -> None:
    made, right, wrong = PLANTED[name]
    assert right in str(made)
    inputs = draw(made, 5)
    try:
        planted = program(str(made).replace(right, wrong))
    except InputError:
        return
    assert planted.digest != made.digest
    exact, found = evaluate(made, inputs), evaluate(planted, inputs)
    output = made.outputs[0].name
    assert not np.allclose(exact[output], found[output])
