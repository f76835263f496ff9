"""Kernels over ranges of entries on a CPU: sparse matrices, graphs, packed sequences.

``code`` shares rows and entries among workers, ``row`` writes the steps of one row, and ``places``
computes the offsets of its elements.
"""
