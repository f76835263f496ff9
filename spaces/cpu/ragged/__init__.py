"""Kernels over ranges of entries on a CPU: sparse matrices, graphs, packed sequences."""
