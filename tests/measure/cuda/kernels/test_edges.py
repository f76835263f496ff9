"""Kernels of all templates on inputs at the edges: infinities, NaN, and what conditions hide."""

from __future__ import annotations

import numpy as np
import pytest

from spaces.operators import workload
from tests.measure.cuda.edges import complaints, kernels

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
        made = kernels(work, 6, c, "rows")
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
    assert complaints(emulator, work, kernels(work, 6, 0, "rows"), [given]) == []
