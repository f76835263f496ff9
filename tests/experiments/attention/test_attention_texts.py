"""The texts of ten operators mean what the named operator with its parameters means."""

from __future__ import annotations

import numpy as np
import pytest

from experiments.attention.page import page, panels
from experiments.attention.picture import draw
from experiments.attention.texts import DEPTH, OPERATORS, lengths_of
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw as drawn
from tilewright.spaces.named import operator


@pytest.mark.parametrize("name", OPERATORS)
def test_a_text_is_the_named_operator(name):
    made = OPERATORS[name]
    written = program(made.text(300), e=DEPTH, **made.sizes(300))
    named = operator("attention", **made.named(300))
    inputs = drawn(named, 1)
    np.testing.assert_allclose(
        evaluate(written, inputs)["y"], evaluate(named, inputs)["y"], rtol=1e-12
    )


def test_a_page_has_each_operator_with_its_text_and_lines(tmp_path):
    cases = {
        f"{name} {n}": {"median_s": {"tilewright": 1.0, "eager": 1.5}, "flops": 2e9}
        for name, made in OPERATORS.items()
        for n in lengths_of(made)
    }
    rows = page(cases).splitlines()[2:]
    assert len(rows) == len(OPERATORS) == 10
    assert rows[1].startswith("| causal | 128: 1.50, 512: 1.50, 2048: 1.50 | 2, 2, 2 | 2 | `where")
    draw(panels(cases), tmp_path / "lengths.svg", "fastest rival's time over ours")
    assert "softcap" in (tmp_path / "lengths.svg").read_text()
