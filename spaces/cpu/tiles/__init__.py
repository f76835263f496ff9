"""The inner loops that several templates share: register tiles, dot products, epilogues.

``register_tile`` holds a tile of sums in registers, with lanes along columns; ``dot_tile`` and
``dot_panel`` have lanes along the depth. ``steps`` describes how they read their operands,
``turns`` and ``tile_sums`` how long sums are stored, ``epilogue`` how outputs are finished, and
``kernel_parts`` how a kernel calls them.
"""
