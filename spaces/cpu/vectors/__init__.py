"""Vectors in C: types, functions, loads, stores and transpositions, for the kernels of all
templates."""
