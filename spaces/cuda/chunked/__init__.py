"""Kernels that carry a state from chunk to chunk of positions, by ``mma.sync``.

``block`` is the plan of a block: names, and tiles in shared memory. ``powers`` writes what decays
of a chunk come to, ``products`` the products of a chunk, ``code`` the walk along all chunks.
"""
