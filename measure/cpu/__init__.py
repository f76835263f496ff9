"""Measuring on the CPU: C kernels built by the system's compiler, run in a supervised child."""
