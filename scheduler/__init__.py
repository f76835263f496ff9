"""Decides which schedules to try next, and holds what users call: tuning, queries, kernels."""
