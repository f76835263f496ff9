"""The translation of ATen nodes into a program: the value of a node at given indices is text.

Views rewrite indices, pointwise nodes compose, and what reduces, or is read by several nodes,
becomes a stage. No operator is known beyond what one ATen node computes.
"""
