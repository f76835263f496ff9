"""Operators without reductions."""
