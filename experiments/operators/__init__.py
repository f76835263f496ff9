"""Operators beside products: Tilewright against libraries and compilers, a table a family."""
