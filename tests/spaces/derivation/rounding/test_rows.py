"""What is allowed at some rows of a program is what is allowed there of all of them."""

import numpy as np
import pytest

from tests.spaces.derivation.programs import ATTENTIONS, ROWS, attention, rows
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.rounding.rows import Rows, row_axes, union
from tilewright.spaces.language import program
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.named import operator

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
    axes = row_axes(work)
    assert axes
    inputs, extents = draw(work, 3), work.extent
    which = {a: np.unique([0, extents[a] // 2, extents[a] - 1]) for a in axes}
    for chosen in (axes[:1], axes):
        rows = Rows({axis: which[axis] for axis in chosen})
        whole, part = allowed(work, inputs), allowed(work, inputs, rows)
        for output in work.outputs:
            stage = work.stage[output.name]
            place = np.ix_(*(rows.values(work, stage)[axis] for axis in stage.axes))
            for all_rows, some in zip(whole[output.name], part[output.name], strict=True):
                np.testing.assert_allclose(some, all_rows[place], rtol=1e-6)


def test_axes_along_which_nothing_else_is_read_are_rows():
    assert row_axes(operator("layernorm", r=4, c=1024)) == ("r", "c")
    assert row_axes(operator("logsumexp", r=4, c=1024)) == ("r",)
    layer = {"n": 1, "c": 32, "h": 28, "w": 30, "o": 128, "r": 3, "s": 3, "padding": 1}
    found = row_axes(operator("conv2d", layout="NHWC", **layer))
    assert set(found) >= {"n", "o"}
    assert not {"c", "r", "s"} & set(found)
    heads = {"b": 1, "h": 4, "i": 3072, "j": 3072, "d": 64}
    assert set(row_axes(operator("attention", **heads))) == {"b", "h", "i", "e"}


@pytest.mark.parametrize(
    "text",
    [
        "s[r] = sum[c](x[r,c])\nt[c] = sum[r](x[r,c])\n-> s, t",
        "p[r] = exp(x[r])\ny[r] = p[11 - r]\nx: float32[12]",
        "y = sum[r](x[r])",
    ],
)
def test_where_rows_depend_on_others_there_are_none(text):
    assert row_axes(made(text)) == ()


def test_the_work_can_be_ended():
    def pause():
        raise KeyboardInterrupt

    work = operator("softmax", r=4, c=8)
    with pytest.raises(KeyboardInterrupt):
        allowed(work, draw(work, 1), pause=pause)


def test_a_union_has_each_place_once_and_rises():
    arrays = (np.array([[5, 1], [1, 3]]), np.zeros(0, int), np.array([7, 0, 7]))
    assert union(8, *arrays).tolist() == [0, 1, 3, 5, 7]
    assert union(8).tolist() == []
