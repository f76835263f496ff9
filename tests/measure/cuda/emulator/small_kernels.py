"""Small kernels over 64 floats, run on the emulator."""

from __future__ import annotations

import numpy as np

from tests.measure.cuda.cuda_kernels import EAGER, kernel, operand

NUMBERS = np.arange(64, dtype=np.float32)
OUT = operand("C", "float32", (64,))


def run(emulator, entry, body, *, mode=EAGER, output=OUT, inputs=None, **options):
    """What comes of a kernel of this body."""
    inputs = {"A": NUMBERS} if inputs is None else inputs
    made = kernel(entry, body, inputs, output, **options)
    return emulator.run(made, inputs, mode)


def fault(emulator, entry, body, **options):
    """What is wrong with a kernel of this body: its kind and its text."""
    result = run(emulator, entry, body, **options)
    assert result.error_kind is not None
    return result.error_kind, result.error_text
