"""Explores the space of an operator on a GPU, and times its best kernels beside rivals."""
