"""Sums of products: the roles of their axes, and where their operands have each element."""
