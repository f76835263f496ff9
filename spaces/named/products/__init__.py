"""Operators that multiply matrices."""
