"""CPU kernels of reductions with lanes along a kept axis: pooling, depthwise, sums of columns.

``code`` writes the loops, ``tile`` the terms and outputs of one tile, ``held`` the operands that
are transposed ahead of it; ``tiling`` cuts outputs into tiles.
"""
