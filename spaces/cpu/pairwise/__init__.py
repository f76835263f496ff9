"""Kernels of sums over pairs of rows and keys on a CPU: gradients of attention, and what is like
them.

``code`` writes the loops over tiles of keys and blocks of rows, ``weights`` turns scores into
weights. Reads and stores are those of ``spaces.cpu.chained.access``.
"""
