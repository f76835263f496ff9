"""Kernels of sums over pairs of rows and keys on a CPU: gradients of attention, and what is like
them."""
