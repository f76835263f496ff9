"""Chains of a GPU over the columns of a deep product, by ``mma.sync``."""
