"""Matrix products of few rows, whose large operand streams past them once.

``code`` writes the loops around register tiles or dot products (``spaces.cpu.tiles``); ``places``
has the layouts and the scratch memory.
"""
