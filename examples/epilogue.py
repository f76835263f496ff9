"""Tune a product of matrices with an epilogue, and call the fastest kernel.

The epilogue is an expression over the sum ``x`` and operands that you name. It runs before the
sums are stored, so that bias, activation and residual cost no pass over memory of their own.
"""

import os

import numpy as np

from tilewright import best, tune, workload

TRIALS = int(os.environ.get("TILEWRIGHT_EXAMPLE_TRIALS", "48"))
M, N, K = 64, 256, 128

layer = workload("matmul", m=M, n=N, k=K, epilogue="relu(x + bias[n]) + residual[m,n]")
result = tune(layer, "cpu", "tuning.db", trials=TRIALS, seconds=60)
print("fastest schedule:", result.best.schedule)

layer_function = best(layer, "cpu", "tuning.db")
generator = np.random.default_rng(0)
a, b, bias, residual = (
    generator.standard_normal(shape, dtype=np.float32) for shape in ((M, K), (K, N), (N,), (M, N))
)
y = layer_function(a, b, bias, residual)

expected = np.maximum(a @ b + bias, 0) + residual
print("largest difference from NumPy:", np.abs(y - expected).max())
assert np.allclose(y, expected, atol=1e-4)
