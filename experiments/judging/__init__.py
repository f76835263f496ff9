"""Measures how long it takes to compute the bounds of programs, on a GPU and on its host."""
