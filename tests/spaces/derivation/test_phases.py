"""The phases of a sum with a stride compute together what the sum computes."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tilewright.spaces.derivation.phases import MOST, phases
from tilewright.spaces.derivation.work import work
from tilewright.spaces.language import Program, program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.inputs import draw
from tilewright.spaces.named import operator


def enlarged(sizes: list[dict[str, int]], groups: int = 1, epilogue: str = "x") -> Program:
    """A transposed convolution over as many dimensions as there are sizes."""
    conditions, places, taps, points, extents = [], [], [], [], {}
    for d, size in enumerate(sizes):
        at = f"(p{d} + {size['padding']} - {size['dilation']} * r{d})"
        if size["stride"] > 1:
            conditions.append(f"{at} % {size['stride']} == 0")
        places.append(f"{at} // {size['stride']}")
        taps.append(f"r{d}")
        points.append(f"p{d}")
        whole = (size["input"] - 1) * size["stride"] + size["dilation"] * (size["taps"] - 1) + 1
        extents[f"r{d}"] = size["taps"]
        extents[f"p{d}"] = max(1, whole - 2 * size["padding"] + size["more"])
    channels = 2 * groups
    entry = "c" if groups == 1 else "o // 3 * 2 + c"
    image = ", ".join(["2", str(channels), *(str(size["input"]) for size in sizes)])
    taken = f"inside(x[n, {', '.join([entry, *places])}], 0)"
    if conditions:
        taken = f"select({' and '.join(conditions)}, {taken}, 0)"
    term = f"{taken} * w[{', '.join([entry, 'o % 3' if groups > 1 else 'o', *taps])}]"
    total = f"sum[{', '.join(['c', *taps])}]({term})"
    text = f"x: float32[{image}]; y[n, o, {', '.join(points)}] = {epilogue.replace('x', total)}"
    return program(text, n=2, c=2, o=3 * groups, **extents)


def together(made: Program, inputs: dict[str, np.ndarray]) -> dict[str, np.ndarray]:
    """What the phases of a program write, each to its own elements."""
    found = {o.name: np.full(o.size, np.nan) for o in made.outputs}
    for phase in phases(made):
        values = evaluate(phase.program, {o.name: inputs[o.name] for o in phase.program.operands})
        for output, start in zip(phase.program.outputs, phase.starts, strict=True):
            steps = [8 * step for step in output.strides]
            part = found[output.name][start:]
            view = np.lib.stride_tricks.as_strided(part, output.shape, steps)
            assert np.isnan(view).all(), "an element is written twice"
            view[...] = values[output.name]
    return {o.name: found[o.name].reshape([o.shape[d] for d in o.order]) for o in made.outputs}


def agree(made: Program) -> None:
    inputs = draw(made, 0)
    expected, found = evaluate(made, inputs), together(made, inputs)
    for output in made.outputs:
        wanted = expected[output.name].transpose(output.order)
        np.testing.assert_allclose(found[output.name], wanted, rtol=1e-6, atol=1e-6)


sizes = st.fixed_dictionaries(
    {
        "input": st.integers(1, 4),
        "taps": st.integers(1, 5),
        "stride": st.integers(1, 3),
        "dilation": st.integers(1, 3),
        "padding": st.integers(0, 2),
        "more": st.integers(0, 2),
    }
)


@settings(max_examples=60, deadline=None)
@given(each=st.lists(sizes, min_size=1, max_size=3), groups=st.integers(1, 2))
def test_phases_of_random_shapes(each, groups):
    made = enlarged(each, groups, "relu(x + b[o])")
    count = np.prod([size["stride"] for size in each])
    if count == 1:
        assert phases(made) == ()
    else:
        assert phases(made)
        agree(made)


SIZE = {"input": 5, "taps": 3, "stride": 2, "dilation": 1, "padding": 1, "more": 1}


def test_a_phase_multiplies_only_what_is_there():
    made = enlarged([SIZE, SIZE])
    found = sum(work(phase.program).flops for phase in phases(made))
    assert found == 2 * 2 * 3 * 2 * 25 * 9  # two for each image, channels, pixels and taps


def test_windows_of_a_phase_run_forward():
    text = [str(phase.program.stages[0].body) for phase in phases(enlarged([SIZE]))]
    assert text == [
        "inside(x[n, c, p0 + r0], 0) * w[c, o, -(2 * r0) + 1]",
        "inside(x[n, c, p0 + r0], 0) * w[c, o, -(2 * r0) + 2]",
    ]


def test_elements_that_no_tap_reaches_are_zero():
    made = enlarged([SIZE | {"dilation": 2, "padding": 0}])
    empty = [p for p in phases(made) if not any(stage.reducer for stage in p.program.stages)]
    assert len(empty) == 1
    agree(made)


def test_other_orders_of_memory_and_several_outputs():
    agree(operator("conv2d_transposed", n=1, c=3, h=4, w=3, o=5, r=4, s=3, stride=2, layout="NHWC"))
    agree(
        program(
            "s[o, p] = sum[r](select((p + 1 - r) % 2 == 0, inside(x[(p + 1 - r) // 2], 0), 0)"
            " * w[o, r]); y[o, p] = s[o, p] * z[p]; x: float32[4]; -> s, y",
            o=3,
            p=8,
            r=4,
        )
    )


NONE: dict[str, Any] = {
    "no stride": "y[p] = sum[r](inside(x[p - r], 0) * w[r])",
    "a stage that reads neighbours": "s[p] = sum[r](select((p - r) % 2 == 0, "
    "inside(x[(p - r) // 2], 0), 0) * w[r]); y[q] = s[q] + s[q + 1]",
    "a sum of all elements": "s[p] = sum[r](select((p - r) % 2 == 0, "
    "inside(x[(p - r) // 2], 0), 0) * w[r]); y = sum[p](s[p])",
    "what else is there": "y[p] = sum[r](select((p - r) % 2 == 0, "
    "inside(x[(p - r) // 2], 0), 1) * w[r])",
    "two axes in one stride": "y[p, q] = sum[r](select((p + q - r) % 2 == 0, "
    "inside(x[(p + q - r) // 2], 0), 0) * w[r])",
    "too many": f"y[p] = sum[r](select((p - r) % {MOST + 1} == 0, "
    f"inside(x[(p - r) // {MOST + 1}], 0), 0) * w[r])",
}


@pytest.mark.parametrize("name", NONE)
def test_programs_without_phases(name):
    extents = {axis: n for axis, n in (("p", 40), ("q", 5), ("r", 3)) if axis in NONE[name]}
    assert phases(program(f"x: float32[40]; {NONE[name]}", **extents)) == ()
