"""Products whose operands are read at computed places: convolutions, and what is like them.

``nest`` derives the loops, ``code`` writes them, ``segments`` writes them for rows in segments
(products of experts). ``copies`` pads, gathers, reorders or packs operands, ``pointers`` locates
arrays, ``memory`` has the workspace, and ``finish`` ends a tile. ``caches`` is the part of
``traffic`` that is about caches.
"""
