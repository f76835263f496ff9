"""Sparse and graph operators beside SciPy and torch; see README.md."""
