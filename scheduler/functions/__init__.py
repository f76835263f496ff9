"""Kernels as Python functions, and as source."""
