"""Kernels of all templates on inputs at the edges: infinities, NaN, and what conditions hide."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.edges import complaints, kernels
from tests.pairwise import pairwise
from tilewright.spaces.operators import workload

INF = np.inf


def few_finite(shape: tuple[int, ...], seed: int, above: int = 3, nothing: float = -INF):
    """Rows of ``nothing`` but a few numbers."""
    rng = np.random.default_rng(seed)
    found = np.full(shape, nothing, np.float32)
    for row in found.reshape(-1, shape[-1]):
        row[rng.choice(shape[-1], above, replace=False)] = rng.normal(size=above)
    return found


ROWS = {
    "softmax": "y[r,c] = softmax[c](x[r,c])",
    "logsumexp": "y[r] = logsumexp[c](x[r,c])",
    "twice": "y[r,c] = softmax[c](x[r,c] * 2)",
    "weighed": "m[r] = max[c](x[r,c])\ny[r] = sum[c](exp(x[r,c] - m[r]) * (c + 1))",
    "powers of two": "m[r] = max[c](x[r,c])\ny[r] = sum[c](exp2(x[r,c] * 3 - m[r] * 3))",
    "a minimum": "m[r] = min[c](-x[r,c])\ny[r] = sum[c](exp(m[r] + x[r,c]))",
    "best": "m[r] = max[c](x[r,c])\na[r] = argmax[c](x[r,c])\n"
    "y[r] = sum[c](exp(x[r,c] - m[r]))\n-> a, y",
}


@pytest.mark.parametrize("name", ROWS)
def test_rows_of_which_little_is_above_minus_infinity(emulator, name):
    """Threads, lanes and blocks that saw nothing else add exactly nothing; rows of nothing else are
    what the program says."""
    for c, dtype in ((64, "float32"), (1000, "float32"), (520, "bfloat16")):
        work = workload(ROWS[name], r=4, c=c, dtype=dtype)
        rows = few_finite((4, c), c)
        edges = few_finite((4, c), c + 1)
        edges[0], edges[1, 5], edges[2, 7] = -INF, INF, np.nan
        made = kernels(work, 4, c, "rows")
        assert made
        given = [{"x": work.program.operands[0].element.cast(x)} for x in (rows, edges)]
        assert complaints(emulator, work, made, given) == []


@pytest.mark.parametrize(
    "text",
    [
        "y[r,c] = softmax[c](x[r,c] * 3e9)",
        "s[r,c] = x[r,c] * 3e9 + b[c]\ny[r] = logsumexp[c](s[r,c])",
        "m[r] = max[c](x[r,c] * x[r,c])\ny[r,c] = sqrt(m[r] - x[r,c] * x[r,c])",
    ],
)
def test_a_value_that_is_computed_twice_is_the_same_number(emulator, text):
    """A product that one use of it rounds and another does not makes NaN of a difference of
    equals."""
    work = workload(text, r=6, c=128)
    rng = np.random.default_rng(0)
    given = {o.name: rng.normal(size=o.shape).astype(np.float32) for o in work.program.operands}
    assert complaints(emulator, work, kernels(work, 4, 0, "rows"), [given]) == []


def test_an_infinite_factor_multiplies_each_term(emulator):
    work = workload("y[r] = sum[c](x[r,c] * s[r])", r=6, c=128)
    given = normal(work, 1, s=np.array([1, INF, -INF, 0, np.nan, 2]))
    assert complaints(emulator, work, kernels(work, 4, 0, "rows"), [given]) == []


ATTENTION = "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h,j,d]) * 0.25{}) * v[b,h,j,e])"
MASKED = ATTENTION.format(" + m[i,j]")
HEADS = {"b": 2, "h": 2, "i": 40, "j": 70, "d": 32, "e": 32}
CHAINED = ("chained", "chained_hopper")


def normal(work, seed: int, **given: np.ndarray) -> dict[str, np.ndarray]:
    """Drawn operands, and those that are given, rounded to their types."""
    rng = np.random.default_rng(seed)
    drawn = {o.name: o for o in work.program.operands}
    return {
        name: o.element.cast(given.get(name, rng.normal(size=o.shape))) for name, o in drawn.items()
    }


@pytest.mark.parametrize("template", CHAINED)
@pytest.mark.parametrize("nothing", [-3.4028235e38, -1e37, -INF, 3.4e38])
def test_masks_that_are_added(emulator, template, nothing):
    """Of rows that are masked throughout, all but one, and all but those of the last tile."""
    work = workload("m: float32\n" + MASKED, **HEADS, dtype="bfloat16")
    mask = np.random.default_rng(1).normal(size=(40, 70))
    mask[1], mask[2, 1:], mask[3, :-3], mask[4, 5:] = [nothing] * 4
    made = kernels(work, 4, 2, template)
    assert len(made) > 2
    assert complaints(emulator, work, made, [normal(work, 3, m=mask)]) == []


@pytest.mark.parametrize("template", CHAINED)
@pytest.mark.parametrize("text", [ATTENTION.format(""), MASKED])
def test_scores_of_any_size_have_weights_that_sum_to_one(emulator, template, text):
    work = workload(text, **HEADS, dtype="bfloat16")
    made = kernels(work, 4, 4, template)
    given = []
    for scale in (1e1, 1e3, 3e4, 1e9):
        whole = np.random.default_rng(5).integers(-3, 4, (2, 2, 40, 32)) * scale
        given.append(normal(work, 6, q=whole, k=np.rint(whole[:, :, :35].repeat(2, 2) / scale)))
        given[-1]["v"] = np.ones_like(given[-1]["v"])
    assert complaints(emulator, work, made, given) == []


CAPPED = (
    "where j <= i + 9\np[h,i,j] = 9 * tanh(sum[d](q[h,i,d] * k[h,j,d]) / 9)\n"
    "m[h,i] = max[j](p[h,i,j])\n"
    "y[h,i,e] = sum[j](exp((p[h,i,j] - m[h,i]) * 2.5) * v[h,j,e])"
)


def test_capped_scores_are_held_for_what_is_weighed_more_sharply(emulator):
    """The elements of the maximum are those that are held: nothing is made of their parts."""
    work = workload(CAPPED, h=3, i=20, j=35, d=16, e=17, dtype="bfloat16")
    made = kernels(work, 3, 3, "chained")
    assert made
    assert complaints(emulator, work, made, [normal(work, 5)]) == []


SLOPED = (
    "l: float32\nwhere j <= i + 30\np[b,h,i,j] = sum[d](q[b,h,i,d] * k[b,h,j,d]) * 0.25 + {}\n"
    "y[b,h,i,e] = sum[j](softmax[j](p[b,h,i,j]) * v[b,h,j,e])\n"
    "l[b,h,i] = logsumexp[j](p[b,h,i,j])\n-> y, l"
)
SLOPES = {
    "of heads": "slope[h] * (j - i - 30)",
    "downwards": "(i - j + 30) * slope[h] * -1",
    "half a number": "(2 * j - 2 * i - 60) * 15000.5",
}


@pytest.mark.parametrize("template", CHAINED)
@pytest.mark.parametrize("bias", SLOPES)
def test_distances_are_taken_before_they_are_multiplied(emulator, template, bias):
    """What multiplies a distance of zero adds nothing, however large it is."""
    work = workload(SLOPED.format(SLOPES[bias]), **HEADS, dtype="bfloat16")
    made = kernels(work, 4, 12, template)
    assert len(made) > 2
    slopes = ([0.5, 16376.0], [1e6, 3.0], [INF, 0.0])
    given = [normal(work, 13, slope=np.array(slope)) for slope in slopes]
    assert complaints(emulator, work, made, given) == []


LENGTHS = "n: int32[b](index < 71)\nwhere j < n[b]"
HIDING = {
    "lengths": LENGTHS,
    "causal": "where j <= i + 20",
    "windows": "where j <= i + 20, j > i + 5",
    "scales of keys": "u: float32\n" + LENGTHS,
    "segments": "s: int32[j](index < 3)\no: int32[i](index < 3)\nwhere s[j] == o[i]",
}


@pytest.mark.parametrize(
    ("template", "hiding", "rubbish"), pairwise(CHAINED, list(HIDING), [np.nan, INF])
)
def test_what_is_hidden_may_be_anything(emulator, template, hiding, rubbish):
    """Unused slots of a cache, keys that only other rows see, and what rows see themselves."""
    text = ATTENTION.format("")
    if hiding == "scales of keys":
        text = text.replace("v[", "u[b,j] * v[")
    work = workload(f"{HIDING[hiding]}\n{text}", **HEADS, dtype="float16")
    if not (made := kernels(work, 4, 7, template)):
        assert (hiding, template) == ("segments", "chained_hopper")
        return
    rng = np.random.default_rng(8)
    v = rng.normal(size=(2, 2, 70, 32))
    k = rng.normal(size=(2, 2, 70, 32))
    lengths, segments = np.array([33, 1]), np.sort(rng.integers(0, 3, 70))
    u = rng.normal(size=(2, 70))
    if "n" in {o.name for o in work.program.operands}:
        for b, n in enumerate(lengths):
            v[b, :, n:] = k[b, :, n:] = u[b, n:] = rubbish
    v[0, 1, 45, 3] = v[1, 0, 0, 5] = rubbish
    given = {"v": v, "k": k, "u": u, "n": lengths, "s": segments, "o": segments[:40]}
    assert complaints(emulator, work, made, [normal(work, 9, **given)]) == []


@pytest.mark.parametrize("rubbish", [np.nan, INF])
def test_a_single_key_may_hide_any_value(emulator, rubbish):
    """A value of the only key is the same for all keys of a row, and still hidden with its key."""
    sizes = HEADS | {"j": 1, "e": 1}
    work = workload(f"{HIDING['segments']}\n{ATTENTION.format('')}", **sizes, dtype="float16")
    made = kernels(work, 4, 7, "chained")
    assert made
    given = {"v": np.full((2, 2, 1, 1), rubbish), "s": [1], "o": np.arange(40) % 3}
    assert complaints(emulator, work, made, [normal(work, 9, **given)]) == []
