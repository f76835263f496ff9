"""Measure what a dispatch table loses against kernels that are tuned for each size."""
