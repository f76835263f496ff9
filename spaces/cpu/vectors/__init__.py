"""Vectors in C: their types and functions, how they move and turn, for kernels of all templates."""
