"""Kernels of this process by the keys that compiled graphs hold, and a process that builds them."""
