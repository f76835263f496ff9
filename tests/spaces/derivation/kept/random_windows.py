"""Random programs of one reduction over windows, channels or columns."""

from __future__ import annotations

import random
from collections.abc import Sequence

from tilewright.spaces.language import Program, program

LAYOUTS = {"NCHW": "n, c, {}, {}", "NHWC": "n, {}, {}, c"}
BODIES = {
    "max": ("-inf", "{x}", "{y}"),
    "min": ("inf", "{x}", "2 * {y}"),
    "sum": ("0", "{x}", "relu({y} + b[c])"),
    "prod": ("1", "{x} * 0.5", "{y}"),
    "filter": ("0", "{x} * f[c, r, s]", "{y} + b[c]"),
    "other": ("0.25", "{x} * f[c, r, s] - 1", "{y} * inside(b[c - 1], 0.5)"),
}


def random_window(seed: int, dtypes: Sequence[str] = ("float32",)) -> Program:
    """Another program for each seed: sizes, strides, paddings, dilations, reducers, layouts."""
    choose = random.Random(seed)
    sizes = {axis: choose.choice((1, 2, 3, 5)) for axis in "rs"}
    steps = {axis: choose.choice((1, 1, 2, 3)) for axis in "rs"}
    dilations = {axis: choose.choice((1, 1, 2)) for axis in "rs"}
    paddings = {axis: choose.choice((0, 1, 2)) for axis in "rs"}
    counts = {axis: choose.choice((1, 3, 7, 13, 18, 35)) for axis in "pq"}
    kind = choose.choice(list(BODIES))
    outside, element, value = BODIES[kind]
    reducer = kind if kind in ("max", "min", "sum", "prod") else "sum"
    extents = {"n": choose.choice((1, 2)), "c": choose.choice((1, 3, 8, 19)), **sizes, **counts}
    places, shape = [], []
    for out, tap in ("pr", "qs"):
        places.append(f"{steps[tap]} * {out} + {dilations[tap]} * {tap} - {paddings[tap]}")
        reach = steps[tap] * (counts[out] - 1) + dilations[tap] * (sizes[tap] - 1) + 1
        shape.append(max(1, reach - 2 * paddings[tap] + choose.choice((0, 0, 1))))
    layout = LAYOUTS[choose.choice(list(LAYOUTS))]
    dtype = choose.choice(list(dtypes))
    read = f"inside(x[{layout.format(*places)}], {outside})"
    x = layout.format(*shape)
    result = value.format(y=f"{reducer}[r, s]({element.format(x=read)})")
    shapes = {"f": "", "b": f"[{extents['c']}]"}
    used = [name for name in shapes if f"{name}[c" in element + value]
    tables = "".join(f"{name}: {dtype}{shapes[name]}; " for name in used)
    text = f"x: {dtype}[{x}]; {tables}y: {dtype}; y[{layout.format('p', 'q')}] = {result}"
    return program(text, **extents)
