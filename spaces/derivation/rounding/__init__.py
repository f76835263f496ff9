"""Bounds on the output of right kernels, derived through each stage of a program."""
