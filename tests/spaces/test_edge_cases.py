"""What may be infinite or NaN of a program whose values overflow in float32 on the way."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.edge_inputs import outcomes, wrong
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate

INF, NAN = np.inf, np.nan
PRODUCT = "y[i] = prod[k](x[i,k])"
WEIGHED = "y[i] = sum[k](softmax[k](x[i,k] * 0) * v[i,k])"
GATED = "s[i] = sum[k](x[i,k])\ny[i] = silu(s[i]) * v[i,0]"


@pytest.mark.parametrize(
    ("text", "x", "v", "may_be", "may_not_be"),
    [
        (PRODUCT, [3e38, 2.0, 0.1], None, [6e37, INF], [7e37, -INF, NAN]),
        (PRODUCT, [3e38, -2.0, 0.1], None, [-6e37, -INF], [INF, NAN]),
        (PRODUCT, [3e38, 2.0, 0.0], None, [0.0, NAN, INF], [1.0]),
        (PRODUCT, [3e38, 0.5, 0.1], None, [1.5e37], [INF, NAN]),
        (WEIGHED, [0.0] * 3, [3e38, 2e38, 1e38], [2e38, INF], [1e38]),
        (WEIGHED, [0.0] * 3, [1e30, 1e30, 1e30], [1e30], [INF, NAN]),
        (GATED, [3e38, 3e38, -3e38], [1.0] * 3, [3e38, INF, 0.0, NAN], [1e38]),
        (GATED, [3e38, 3e38, -3e38], [INF] * 3, [INF, NAN], []),
        (GATED, [1e38, 1e38, 1e38], [1.0] * 3, [3e38], [INF, NAN]),
    ],
)
def test_values_on_the_way_may_overflow(text, x, v, may_be, may_not_be):
    made = program(text, i=1, k=3)
    given = {"x": np.array([x]), "v": np.array([v if v else [0.0] * 3])}
    given = {o.name: given[o.name].astype(np.float32) for o in made.operands}
    singles = [outcome["y"] for outcome in outcomes(made, given)]
    bounds = allowed(made, given)["y"]

    def is_wrong(value: float) -> bool:
        found = np.array([value], np.float32)
        return bool(wrong(found, evaluate(made, given)["y"], singles, *bounds)[0])

    assert not any(map(is_wrong, may_be))
    assert all(map(is_wrong, may_not_be))


def test_a_quotient_may_be_a_product_with_a_subnormal_reciprocal():
    made = program("y[i,k] = x[i,k] / z[i]", i=200, k=5)
    draw = np.random.default_rng(0).uniform
    x = draw(1e37, 3e38, (200, 5)).astype(np.float32)
    z = draw(9e37, 3.4e38, 200).astype(np.float32)
    low, high = allowed(made, {"x": x, "z": z})["y"]
    multiplied = x * (np.float32(1) / z)[:, None]
    assert ((low <= multiplied) & (multiplied <= high)).all()
    assert (multiplied * np.float32(1 + 3e-6) > high).all()
