"""Planted bugs in gradients are found by differences: of attention, convolutions, norms, steps."""

import numpy as np
import pytest

from tests.spaces.cycle_programs import TEXTS, extents_of
from tests.spaces.derivation.gradients.differences import derivatives, seeds, wide
from tilewright.spaces.derivation.gradients.saving import forward
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.named import operator

ATTENTION = operator("attention", b=1, h=4, i=5, j=6, d=3, kv=2, mask="causal")
CONVOLUTION = operator("conv2d", n=2, c=3, h=5, w=4, o=4, r=3, s=3, padding=1)
NORM = operator("layernorm", r=4, c=6)
ATTENDING = (ATTENTION, "qkv", ["y", "lse"])
CONVOLVING = (CONVOLUTION, ["image"], [])
STEPPING = (program(TEXTS["gated delta"], **extents_of("gated delta")), "akvgq", ["S"])
NORMALISING = (NORM, ["x"], ["mean", "rstd"])
BUGS = {
    "one head of a group alone": (ATTENDING, "2 * k1 + h_3", "2 * k1"),
    "the heads of another group": (ATTENDING, "2 * v1 + h_2", "v1 + 2 * h_2"),
    "a mask one off at the diagonal": (ATTENDING, "where j <=", "where j <"),
    "delta of another row": (ATTENDING, "_sum2_sum[b, h, i])", "_sum2_sum[b, h, 0])"),
    "an exponential of another row": (ATTENDING, "- lse[b, h, i]", "- lse[b, h, 4 - i]"),
    "a filter that is not turned": (CONVOLVING, "- r + 1", "+ r - 1"),
    "a border that is read": (CONVOLVING, "], 0) * filter", "], 1) * filter"),
    "a state of this step": (STEPPING, "inside(S[b, t - 1, d, e], 0)", "S[b, t, d, e]"),
    "steps that go up again": (STEPPING, "dS_before[b, t + 1", "dS_before[b, t - 1"),
    "a step that is forgotten": (STEPPING, "+ inside(dS_b", "+ 0 * inside(dS_b"),
    "a state that decays no more": (STEPPING, "sigmoid(a[b, t]) * (dS", "1 * (dS"),
    "half a variance": (NORMALISING, "2 * ", "1 * "),
    "a mean that is left out": (NORMALISING, "dmean_sum[r] / 6", "0 * dmean_sum[r]"),
}


@pytest.mark.parametrize("name", BUGS)
def test_planted_bugs_are_found(name: str) -> None:
    (made, wrt, saved), right, wrong = BUGS[name]
    found, inputs, derived = derivatives(made, [*wrt], saved)
    text = str(derived)
    assert right in text
    states = evaluate(forward(made, saved), inputs)
    given = {f"d{output}": value for output, value in seeds(made).items()}
    known = wide(made) | states | given
    planted = program(text.replace(right, wrong))
    results = evaluate(planted, {operand: known[operand] for operand in planted.operand})
    pairs = zip(found.values(), (results[o.name] for o in planted.outputs), strict=True)
    assert not all(np.allclose(right, wrong, rtol=1e-6) for right, wrong in pairs)
