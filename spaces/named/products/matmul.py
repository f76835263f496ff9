"""Products of matrices, and of batches of them."""

from tilewright.spaces.workloads.words import matmul

__all__ = ["EXAMPLE", "matmul"]

EXAMPLE = 'm=512 n=512 k=512 epilogue="relu(x + bias[n])"'
