"""Kernels in float64 that judge all others on a device, and what they are written with."""
