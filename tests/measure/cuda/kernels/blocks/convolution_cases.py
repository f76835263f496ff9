"""Random convolutions for CUDA templates: strides, borders, dilations, groups, layouts, dtypes."""

from __future__ import annotations

import numpy as np

from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space
from tilewright.spaces.target import detect_target

EPILOGUES = ("", "relu(x + bias[o])", "relu(x + bias[o] + residual[{}])", "silu(x) * gate[n, o]")
DTYPES = ("float16", "bfloat16", "float32")
LAYOUTS = {"NHWC": "n, p, q, o", "NCHW": "n, o, p, q"}


def random_convolution(generator: np.random.Generator, number: int) -> Space:
    """Consecutive numbers have other dtypes, layouts and epilogues."""
    while True:
        try:
            return _convolution(generator, number)
        except InputError:  # no place for the window
            continue


def _convolution(generator: np.random.Generator, number: int) -> Space:
    def among(*values: int) -> int:
        return int(generator.choice(values))

    groups, layout = among(1, 1, 2, 3), list(LAYOUTS)[number // 3 % 2]
    made = workload(
        "conv2d",
        n=among(1, 2, 3),
        c=groups * among(1, 3, 8, 16, 40),
        h=among(3, 7, 8, 13),
        w=among(3, 7, 8, 13),
        o=groups * among(2, 5, 8, 24, 40),
        r=among(1, 2, 3, 5),
        s=among(1, 2, 3, 5),
        stride=among(1, 1, 2, 3),
        padding=among(0, 1, 2),
        dilation=among(1, 1, 2),
        groups=groups,
        dtype=DTYPES[number % len(DTYPES)],
        out=str(generator.choice(["", "float32"])),
        layout=layout,
        epilogue=EPILOGUES[number // 2 % len(EPILOGUES)].format(LAYOUTS[layout]),
    )
    return space_for(made, detect_target(str(generator.choice(["cuda:sm_80", "cuda:sm_90a"]))))
