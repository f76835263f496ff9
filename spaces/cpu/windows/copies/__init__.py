"""Copies in kernels of placed products: padded operands, patches at borders, packed blocks."""
