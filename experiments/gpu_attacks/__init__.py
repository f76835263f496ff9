"""Kernels that harm a GPU's runner on purpose, and what became of the others beside them."""
