"""An operator of one's own is one short file, and nothing else."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np
import pytest

from tilewright.spaces import named
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import workload

SQUARED_RELU = '''\
"""Squared rectifiers, as Primer has them."""

from tilewright.spaces.language import Program, program

EXAMPLE = "r=8 c=16"


def squared_relu(r: int, c: int, dtype: str = "float32") -> Program:
    """The square of what is positive."""
    return program("y[r, c] = relu(x[r, c]) * relu(x[r, c])", dtype=dtype, r=r, c=c)
'''
LP_NORM = '''\
"""Rows over their p-norm."""

from tilewright.spaces.errors import InputError
from tilewright.spaces.language import Program, program

EXAMPLE = "r=8 c=16 p=4"


def lp_norm(r: int, c: int, p: int = 2) -> Program:
    """Rows of p-norm 1; p is even."""
    if p % 2 or p < 2:
        raise InputError(f"p={p} is not allowed; allowed: even numbers from 2")
    power = " * ".join(["x[r, c]"] * p)
    return program(f"y[r, c] = x[r, c] / exp(log(sum[c]({power})) / {p})", r=r, c=c)
'''


@pytest.fixture
def _added(tmp_path: Path, monkeypatch: pytest.MonkeyPatch):
    """Both files, where operators are looked for."""
    files = {"squared_relu": SQUARED_RELU, "lp_norm": LP_NORM}
    for name, text in files.items():
        assert text.count("\n") <= 30
        (tmp_path / f"{name}.py").write_text(text)
    monkeypatch.setattr(named, "__path__", [*named.__path__, str(tmp_path)])
    yield
    for name in files:
        sys.modules.pop(f"tilewright.spaces.named.{name}", None)


@pytest.mark.usefixtures("_added")
@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("squared_relu", lambda x: np.maximum(x, 0) ** 2),
        ("lp_norm", lambda x: x / (x**4).sum(axis=1, keepdims=True) ** 0.25),
    ],
)
def test_a_new_operator_is_listed_and_is_a_workload(name, expected) -> None:
    assert name in named.names()
    made = workload(f"{name} {named.named(name).example}")
    assert workload(str(made)) == made
    inputs = {"x": made.make_inputs(1)["x"].astype(np.float64)}
    np.testing.assert_allclose(evaluate(made.program, inputs)["y"], expected(inputs["x"]), 1e-12)
