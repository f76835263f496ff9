"""Programs of as many axes and stages as there may be."""

from __future__ import annotations

import numpy as np
import pytest

from tests.spaces.cpu.native import check_sampled
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.errors import InputError
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.reading.reader import MAX_AXES, MAX_STAGES
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for


def of_axes(count: int) -> tuple[str, dict[str, int]]:
    """A sum along one axis of an array that has many."""
    names = [f"a{number}" for number in range(count)]
    kept = ", ".join(names[1:])
    extents = {name: 2 if number % 5 == 0 else 1 for number, name in enumerate(names)}
    return f"y[{kept}] = sum[a0](x[{', '.join(names)}])", extents


def test_as_many_axes_as_allowed(tmp_path):
    text, extents = of_axes(MAX_AXES)
    made = program(text, **extents)
    x = np.arange(np.prod(made.operands[0].shape), dtype=np.float32).reshape(made.operands[0].shape)
    np.testing.assert_array_equal(evaluate(made, {"x": x})["y"], x.sum(0))
    check_sampled(space_for(workload(text, **extents), detect_cpu()), 1, 0, tmp_path)


def test_as_many_stages_as_allowed():
    def stages(count: int) -> str:
        lines = [f"s{n}[i] = s{n - 1}[i] + {n}" for n in range(1, count)]
        return "\n".join(["s0[i] = x[i]", *lines])

    made = program(stages(MAX_STAGES), i=3)
    assert evaluate(made, {"x": np.zeros(3, "f4")})[f"s{MAX_STAGES - 1}"][0] == sum(range(128))
    with pytest.raises(InputError, match="129 stages; allowed: 128"):
        program(stages(MAX_STAGES + 1), i=3)
