"""Programs as rows: what their places and passes compute, and what is refused in words."""

import numpy as np
import pytest

from tests.spaces.derivation.programs import FURTHER_ROWS, REFUSED, ROWS, inputs, random_chain, rows
from tests.spaces.derivation.rows.rows_meaning import computed
from tilewright.spaces.derivation.rows.use import Use
from tilewright.spaces.derivation.rows.view import rows_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.named import operator

NAMED = [
    ("softmax", {"r": 5, "c": 7}),
    ("log_softmax", {"r": 1, "c": 1}),
    ("logsumexp", {"r": 5, "c": 13}),
    ("cross_entropy", {"r": 6, "c": 11}),
    ("layernorm", {"r": 3, "c": 17, "outputs": "y,mean,rstd"}),
    ("layernorm", {"r": 1, "c": 5}),
    ("rmsnorm", {"r": 4, "c": 9}),
    ("sum", {"shape": "3x4x5x2", "over": "2,3"}),
    ("mean", {"shape": "3x4x5", "over": "0,2"}),
    ("max", {"shape": "3x4x5", "over": "0,1,2"}),
    ("min", {"shape": "3x4x5", "over": "0"}),
    ("argmax", {"shape": "3x4x5", "over": "2,1"}),
    ("argmax", {"shape": "3x4x5", "over": "0,2"}),
    ("swiglu", {"r": 4, "c": 6}),
    ("map", {"m": 4, "n": 5, "expression": "relu(x[n, m]) * scale[n] + m"}),
    ("embedding", {"t": 6, "d": 4, "words": 9}),
    ("avg_pool2d", {"n": 2, "c": 3, "h": 6, "w": 6, "r": 2}),
]
SERVED = sorted({*ROWS, *FURTHER_ROWS} - {"rmsnorm_matmul", "weighted_logits", "causal_rows"})


def wide(made):
    """Drawn inputs in float64; indices stay whole numbers."""
    drawn = draw(made, 3)
    return {n: a if a.dtype.kind == "i" else a.astype(np.float64) for n, a in drawn.items()}


def agree(made, values):
    found = rows_of(made)
    expected = evaluate(made, values)
    for form in ("online", "plain"):
        for parts in (1, 3):
            for name, value in computed(found, values, form, parts).items():
                np.testing.assert_allclose(value, expected[name], 1e-9, 1e-9, err_msg=form + name)


@pytest.mark.parametrize(("name", "parameters"), NAMED)
def test_named_operators_are_what_their_rows_compute(name, parameters):
    made = operator(name, **parameters)
    agree(made, wide(made))


@pytest.mark.parametrize("name", SERVED)
def test_dependent_reductions_are_what_their_rows_compute(name):
    made = rows(name)
    agree(made, inputs(made))


@pytest.mark.parametrize("name", sorted({*REFUSED} - {"other_row", "sum_between"}))
def test_without_a_correction_there_are_as_many_passes_online_as_plain(name):
    made = rows(name)
    agree(made, inputs(made))
    found = rows_of(made)
    assert len(found.online) == len(found.plain) == 2


def test_random_chains_are_what_their_rows_compute():
    served = 0
    for seed in range(80):
        try:
            made = random_chain(seed)
            rows_of(made)
        except InputError:
            continue
        generator = np.random.default_rng(seed)
        values = {o.name: generator.uniform(-1, 1, o.shape) for o in made.operands}
        with np.errstate(all="ignore"):
            largest = max(np.abs(value).max() for value in evaluate(made, values).values())
            if largest < 1e4:
                agree(made, values)
                served += 1
    assert served > 20


def spans(made):
    found = rows_of(made)
    return [[s.extent for s in found.rows], [s.extent for s in found.columns]]


def test_axes_that_lie_behind_each_other_in_every_array_are_one():
    text = "y[a, b, c, d] = softmax[c, d](x[a, b, c, d])"
    assert spans(program(text, a=2, b=3, c=4, d=5)) == [[6], [20]]
    assert spans(program("x: float32(order=(1, 0, 2, 3))\n" + text, a=2, b=3, c=4, d=5)) == [
        [2, 3],
        [20],
    ]
    assert spans(program(f"x: float32(leading=8)\n{text}", a=2, b=3, c=4, d=5)) == [[6], [4, 5]]


def test_a_map_of_dense_arrays_is_one_row_that_may_be_divided():
    made = program("y[a, b] = x[a, b] * 2", a=6, b=7)
    assert rows_of(made).is_map
    assert spans(made) == [[1], [42]]
    assert spans(program("y[a, b] = x[a, b] * w[b]", a=6, b=7)) == [[6], [7]]


def test_an_axis_whose_value_counts_stays_alone():
    made = program("y[a, b, c] = x[a, b, c] * b", a=2, b=3, c=4)
    assert spans(made) == [[2, 3], [4]]
    assert rows_of(made).axis["b"] == ("rows", 1)


def test_how_operands_are_read_is_told_apart():
    text = "label: int32[r](index < 40)\n"
    text += "y[r, c] = x[r, c] * w[c] + s[r] * u + x[r, label[r]] - mean[c](x[r, c])"
    found = rows_of(program(text, r=4, c=40))
    kinds = {(read.name, place.kind) for read, place in found.places.items()}
    assert kinds == {
        ("x", "element"),
        ("w", "column"),
        ("s", "row"),
        ("u", "number"),
        ("x", "row"),
        ("label", "row"),
    }


def test_passes_are_fused_by_corrections_or_a_pass_each():
    found = rows_of(operator("layernorm", r=4, c=8))
    assert [len(p) for p in found.online] == [3]
    assert [len(p) for p in found.plain] == [1, 1]
    assert not any(r.correction for p in found.plain for r in p)


def test_the_order_of_the_writing_makes_no_difference():
    one = program("y[r] = sum[c, d](x[r, c, d] * z[r, d, c])", r=2, c=3, d=4)
    two = program("y[r] = sum[d, c](z[r, d, c] * x[r, c, d])", d=4, r=2, c=3)
    assert one.digest == two.digest
    assert spans(one) == spans(two)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("where c <= r\ny[r, c] = softmax[c](x[r, c])", "bounded by c <= r"),
        ("y[r] = max[c](x[r, c]) + max[d](z[r, d])", "reduces over d"),
        ("x: float32[4, 6]\ny[r] = sum[c](inside(x[r, c - 1], 0))", "may leave its array"),
        ("y[r, c] = x[r, c // 2]", "plain axes"),
        ("y[r, c] = x[r, (c + 1) % 6]", "plain axes"),
        ("i: int32[c](index < 6)\ny[r] = sum[c](x[r, i[c]])", "for each element of a row"),
        ("s = sum[c](w[c])\ny[r] = max[c](x[r, c])\n-> s, y", "s is the same along r"),
        ("y[r, d] = max[c, d](x[r, c, d]) + x[r, 0, d]", "a part of each row"),
        ("m[r] = max[c](x[r, c])\ny[r, c] = x[r, c] - m[r // 2]", "another row"),
        ("i[r] = argmax[c](x[r, c])\ny[r] = x[r, i[r]]\n-> y", "computed"),
    ],
)
def test_what_has_no_rows_is_refused_in_words(text, words):
    known = {"r": 4, "c": 6, "d": 3}
    extents = {a: n for a, n in known.items() if f"{a}]" in text or f"{a}," in text}
    with pytest.raises(InputError, match=words):
        rows_of(program(text, **extents))


@pytest.mark.parametrize("name", ["matmul", "conv2d", "attention"])
def test_products_have_rows_or_are_refused_in_words(name):
    parameters = {
        "matmul": {"m": 3, "n": 4, "k": 5},
        "conv2d": {"n": 1, "c": 2, "h": 5, "w": 5, "o": 3, "r": 3, "s": 3, "padding": 1},
        "attention": {"b": 1, "h": 2, "i": 4, "j": 4, "d": 8},
    }[name]
    made = operator(name, **parameters)
    if name == "matmul":
        agree(made, wide(made))
    else:
        with pytest.raises(InputError):
            rows_of(made)


def test_what_a_later_pass_alone_reads_is_kept():
    found = rows_of(operator("rmsnorm_matmul", m=3, n=5, k=7))
    names = [[r.name for r in pass_] for pass_ in Use(found, found.plain).passes]
    assert names == [["C_sum"], ["C"]]
