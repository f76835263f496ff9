"""Attention on a GPU against libraries and compilers."""
