"""A maximum whose shift changes nothing is free; one whose shift changes anything is not."""

from dataclasses import replace

import numpy as np
import pytest

from tests.spaces.derivation.gradients.differences import wide
from tilewright.spaces.derivation.algebra import number
from tilewright.spaces.derivation.gradients.saving import logsumexps
from tilewright.spaces.derivation.gradients.shifts import free_extremes
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.evaluation import evaluate, evaluate_stages
from tilewright.spaces.language.tree import Binary, Expression, Read

EXTENTS = {"i": 3, "j": 5}
FREE = {
    "a softmax": "y[i, j] = softmax[j](x[i, j])",
    "a logarithm": "y[i] = logsumexp[j](x[i, j])",
    "halves": "m[i] = max[j](x[i, j]); y[i] = sqrt(sum[j](exp(2 * (x[i, j] - m[i])))) "
    "/ sum[j](exp(x[i, j] - m[i]))",
    "a mask": "m[i] = max[j](x[i, j]); l[i] = sum[j](select(j > i, exp(x[i, j] - m[i]), 0)); "
    "y[i] = m[i] + log(l[i])",
    "a cast": "m[i] = max[j](x[i, j]); y[i] = bfloat16(sum[j](exp(x[i, j] - m[i]) * x[i, j])) "
    "/ sum[j](exp(x[i, j] - m[i]))",
    "a minimum": "m[i] = min[j](x[i, j]); y[i, j] = (x[i, j] - m[i]) - (2 - m[i])",
    "the place": "m[i] = max[j](x[i, j]); p[i] = argmax[j](x[i, j] - m[i]); y[i] = x[i, p[i]]",
    "a comparison": "m[i] = max[j](x[i, j]); y[i, j] = select(m[i] - x[i, j] > m[i], x[i, j], 1)",
    "a maximum of both": "m[i] = max[j](x[i, j]); y[i, j] = max(m[i] - x[i, j], m[i]) - m[i]",
}
NOT_FREE = {
    "an exponential": "m[i] = max[j](x[i, j]); y[i, j] = exp(x[i, j] - m[i])",
    "one more": "m[i] = max[j](x[i, j]); y[i] = m[i] + log(1 + sum[j](exp(x[i, j] - m[i])))",
    "a wrong factor": "m[i] = max[j](x[i, j]); "
    "y[i] = m[i] + log(sum[j](exp(2 * (x[i, j] - m[i]))))",
    "a product": "m[i] = max[j](x[i, j]); y[i, j] = m[i] * x[i, j] - m[i]",
    "an output": "m[i] = max[j](x[i, j]); y[i, j] = exp(x[i, j] - m[i]) / "
    "sum[j](exp(x[i, j] - m[i])); -> y, m",
    "a bound": "m[i] = max[j](x[i, j]); y[i] = sum[j: j <= i](x[i, j] - m[i]) + 5 * m[i]",
    "a comparison with a number": "m[i] = max[j](x[i, j]); y[i, j] = select(x[i, j] > m[i], 1, 0)",
    "zero beside it": "m[i] = max[j](x[i, j]); y[i, j] = max(m[i] - x[i, j], 0) - m[i]",
    "the square": "m[i] = max[j](x[i, j]); y[i, j] = exp(x[i, j] - m[i] * m[i]) "
    "/ sum[j](exp(x[i, j] - m[i] * m[i])) * m[i]",
    "a saturated one": "m[i] = max[j](x[i, j]); y[i, j] = min(exp(x[i, j] - m[i]), 0.5) "
    "/ sum[j](exp(x[i, j] - m[i]))",
    "a border": "m[i] = max[j](x[i, j]); y[i] = sum[j](exp(inside(x[i, j + 1], 0) - m[i])) "
    "/ sum[j](exp(x[i, j] - m[i])) + inside(m[i - 1], 0)",
}


def shifted(made: Program, by: float) -> Program:
    """Return the program with a number added to its first extreme value wherever that is read."""
    name = next(s.name for s in made.stages if s.reducer in ("max", "min"))

    def visit(node: Expression) -> Expression:
        children = tuple(map(visit, node.children))
        if isinstance(node, Read) and node.name == name:
            return Binary("+", Read(node.name, children, node.outside), number(by))
        return node.with_children(children)

    stages = tuple(s if s.name == name else replace(s, body=visit(s.body)) for s in made.stages)
    return replace(made, stages=stages)


@pytest.mark.parametrize("name", [*FREE, *NOT_FREE])
def test_free_maxima(name: str) -> None:
    text = FREE.get(name) or NOT_FREE[name]
    made = program(f"x: float32[i, j]; {text}", **EXTENTS)
    assert bool(free_extremes(made)) == (name in FREE)
    if "bfloat16" not in text and not made.stage.keys() & {o.name for o in made.outputs} & {"m"}:
        inputs = wide(made)
        plain = evaluate(made, inputs)["y"]
        moved = (evaluate(shifted(made, by), inputs)["y"] for by in (0.375, -0.375))
        same = [np.allclose(plain, each, rtol=1e-12) for each in moved]
        assert all(same) == (name in FREE)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("y[i, j] = softmax[j](x[i, j])", "lse"),
        ("y[i] = logsumexp[j](x[i, j])", "y"),
        ("where j <= i; lse[i, j] = softmax[j](x[i, j])", "lse2"),
    ],
)
def test_logarithms_of_sums(text: str, name: str) -> None:
    made = program(text, **EXTENTS)
    (found,) = logsumexps(made)
    assert found.name == name
    states = evaluate_stages(made, wide(made))
    assert (states[found.total] > 0).all()


def test_a_weighted_sum_stands_for_no_maximum() -> None:
    made = program(
        "m[i] = max[j](x[i, j]); l[i] = sum[j](w[j] * exp(x[i, j] - m[i])); "
        "y[i] = m[i] + log(l[i])",
        **EXTENTS,
    )
    assert free_extremes(made)
    assert not logsumexps(made)
