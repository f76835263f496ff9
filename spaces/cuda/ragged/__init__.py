"""Kernels over ranges of entries on a GPU: sparse matrices, graphs, packed sequences.

``sizes`` says which threads have what, ``code`` shares rows or entries among teams of threads,
``row`` writes the steps of one row, and ``reads`` loads its elements.
"""
