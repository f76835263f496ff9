"""Maps: transpositions, gathers and all other programs that compute each element by itself.

``code`` writes a tile, ``sharing`` the loops over tiles. ``transposed`` and ``straight`` transpose
blocks, into scratch memory or straight to the output; ``values`` computes elements, ``lines`` finds
cache lines, and ``names`` has the C variables. ``registers`` says what vectors hold, ``tiling`` how
tiles are cut.
"""
