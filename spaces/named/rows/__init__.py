"""Operators that normalise or sum up rows."""
