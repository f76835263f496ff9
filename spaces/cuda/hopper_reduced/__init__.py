"""Reductions of the rows of a product, tile by tile, in Hopper's kernel of products."""
