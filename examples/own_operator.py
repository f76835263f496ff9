"""Write an operator of your own as a program, get a kernel at once, then tune for a faster one.

A program has a line for each stage, ``name[axes] = expression``, with reductions over named axes.
Here each row is normalised by its root mean square, scaled, and gated by a second input.
"""

import os

import numpy as np

from tilewright import best, program, tune

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "48"))
ROWS, COLUMNS = 64, 512

TEXT = """
square[r] = sum[c](x[r, c] * x[r, c])
y[r, c] = x[r, c] * rsqrt(square[r] / 512 + 1e-6) * weight[c] * sigmoid(gate[r, c])
"""
gated_norm = program(TEXT, r=ROWS, c=COLUMNS)

untuned = best(gated_norm, "cpu", None)  # no database: the schedule is predicted
print("before tuning:", untuned.provenance, untuned.schedule)

tune(gated_norm, "cpu", "tuning.db", trials=TRIALS, seconds=60)
tuned = best(gated_norm, "cpu", "tuning.db")
print("after tuning: ", tuned.provenance, tuned.schedule)

generator = np.random.default_rng(0)
x, gate = (generator.standard_normal((ROWS, COLUMNS), dtype=np.float32) for _ in range(2))
weight = generator.standard_normal(COLUMNS, dtype=np.float32)
expected = x / np.sqrt((x * x).mean(axis=1, keepdims=True) + 1e-6) * weight / (1 + np.exp(-gate))
for function in (untuned, tuned):
    y = function(x=x, weight=weight, gate=gate)  # by name, in any order
    assert np.allclose(y, expected, atol=1e-4)
print("both agree with NumPy")
