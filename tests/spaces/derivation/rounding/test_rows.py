"""What is allowed at some rows of a program is what is allowed there of all of them."""

import numpy as np
import pytest

from spaces.derivation.rounding.allowance import allowed
from spaces.derivation.rounding.rows import Rows, row_axis
from spaces.language import program
from spaces.language.inputs import draw
from spaces.named import operator
from tests.spaces.derivation.programs import ATTENTIONS, ROWS, attention, rows

NAMED = {
    "layernorm": {"r": 12, "c": 9},
    "rope": {"b": 2, "t": 5, "h": 3, "d": 4},
    "embedding": {"t": 12, "d": 5, "words": 4},
    "argmax": {"shape": "12x9", "over": "0"},
    "conv2d": {"n": 1, "c": 2, "h": 9, "w": 8, "o": 3, "r": 3, "s": 3},
    "max_pool2d": {"n": 1, "c": 2, "h": 9, "w": 8, "r": 3},
    "grouped_matmul": {"t": 12, "n": 5, "k": 4, "experts": 3},
}
TEXTS = {
    "an index that depends on the row": "y[r] = x[11 - r] + inside(x[r - 1], 3)\nx: float32[12]",
    "a row as a value": "where c <= r\ny[r] = sum[c](x[r,c] * (r + 2))",
    "rows of a stage": "m[r] = max[c](x[r,c])\ny[c,r] = x[r,c] - m[r] + r",
}


def made(text):
    """A program of axes ``r`` and, where it has one, ``c``."""
    return program(text, **({"r": 12, "c": 12} if "[c]" in text else {"r": 12}))


def programs():
    yield from ((name, attention(name)) for name in ATTENTIONS)
    yield from ((name, rows(name)) for name in ROWS)
    yield from ((name, operator(name, **sizes)) for name, sizes in NAMED.items())
    yield from ((name, made(text)) for name, text in TEXTS.items())


@pytest.mark.parametrize(("name", "work"), list(programs()), ids=lambda value: str(value)[:20])
def test_rows_alone_are_allowed_what_they_are_among_all(name, work):
    axis = row_axis(work)
    assert axis is not None
    inputs, extent = draw(work, 3), work.extent[axis]
    which = np.unique([0, extent // 2, extent - 1])
    whole, part = allowed(work, inputs), allowed(work, inputs, Rows(axis, which))
    for output in work.outputs:
        dimension = work.stage[output.name].axes.index(axis)
        for all_rows, some in zip(whole[output.name], part[output.name], strict=True):
            np.testing.assert_allclose(some, all_rows.take(which, dimension), rtol=1e-6)


def test_an_axis_that_leaves_least_to_do_for_each_row_is_chosen():
    assert row_axis(operator("softmax", r=4, c=1024)) == "r"
    layer = {"n": 1, "c": 32, "h": 28, "w": 30, "o": 128, "r": 3, "s": 3, "padding": 1}
    assert row_axis(operator("conv2d", layout="NHWC", **layer)) == "o"
    heads = {"b": 1, "h": 4, "i": 3072, "j": 3072, "d": 64}
    assert row_axis(operator("attention", **heads)) == "i"  # a head shares nothing, but is large


@pytest.mark.parametrize(
    "text",
    [
        "s[r] = sum[c](x[r,c])\nt[c] = sum[r](x[r,c])\n-> s, t",
        "p[r] = exp(x[r])\ny[r] = p[11 - r]\nx: float32[12]",
        "y = sum[r](x[r])",
    ],
)
def test_where_rows_depend_on_others_there_are_none(text):
    assert row_axis(made(text)) is None


def test_the_work_can_be_ended():
    def pause():
        raise KeyboardInterrupt

    work = operator("softmax", r=4, c=8)
    with pytest.raises(KeyboardInterrupt):
        allowed(work, draw(work, 1), pause=pause)
