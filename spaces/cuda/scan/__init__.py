"""Kernels of scans on a GPU: reductions that run along rows, with maps before and after.

``sizes`` says which threads have which elements; ``code`` writes the walk of a block, and
``prelude`` the functions of threads that it calls.
"""
