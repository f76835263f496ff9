"""Chains of reductions over the columns of a product, some of which multiply by another matrix."""
