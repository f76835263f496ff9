"""Tune attention with a mask of your own: causal, and only the last 16 keys.

``where`` says which terms there are. What it hides is neither computed nor read.
"""

import os

import numpy as np

from tilewright import best, program, tune

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "32"))
HEADS, LENGTH, DEPTH, WINDOW = 4, 64, 32, 16

TEXT = """
where j <= i and i < j + 16
score[h, i, j] = sum[d](q[h, i, d] * k[h, j, d]) * 0.125
y[h, i, e] = sum[j](softmax[j](score[h, i, j]) * v[h, j, e])
"""
attention = program(TEXT, h=HEADS, i=LENGTH, j=LENGTH, d=DEPTH, e=DEPTH)
tune(attention, "cpu", "tuning.db", trials=TRIALS, seconds=60)
function = best(attention, "cpu", "tuning.db")
print(function.provenance, function.schedule)

generator = np.random.default_rng(0)
q, k, v = (generator.standard_normal((HEADS, LENGTH, DEPTH), dtype=np.float32) for _ in range(3))
y = function(q=q, k=k, v=v)

i, j = np.ogrid[:LENGTH, :LENGTH]
visible = (j <= i) & (i < j + WINDOW)
scores = np.where(visible, q @ k.transpose(0, 2, 1) * 0.125, -np.inf)
weights = np.exp(scores - scores.max(axis=2, keepdims=True))
expected = weights / weights.sum(axis=2, keepdims=True) @ v
print("largest difference from NumPy:", np.abs(y - expected).max())
assert np.allclose(y, expected, atol=1e-4)
