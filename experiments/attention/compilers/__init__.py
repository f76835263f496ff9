"""Attention by compilers: the plain text, and a kernel of blocks written in Triton."""
