"""Matrix products in cache blocks, whose operands are packed or read in place.

``code`` writes the loops around register tiles (``spaces.cpu.tiles``), ``packing`` the functions
that copy blocks, ``ahead`` the prefetches of what comes next; ``memory`` has the scratch memory and
the layouts. Rules are in ``rules`` (registers, workers, equal blocks) and ``memory_rules``
(packing, caches).
"""
