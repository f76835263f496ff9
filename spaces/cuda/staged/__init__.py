"""Kernels on a GPU that are launched one after the other, with arrays of their own between them."""
