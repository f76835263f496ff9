"""Dependent reductions over the same axes, fused into passes by corrections."""
