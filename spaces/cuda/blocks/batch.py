"""Which product of a batch a block works on: z numbers them, and x where z has no room."""

from __future__ import annotations

from tilewright.spaces.algebra.index import Index, index

MOST_PRODUCTS = 65_535
"""Extent of a launch along z at most."""


def x_numbers(batches: int) -> bool:
    """Whether so many products are numbered along x, after the tiles of each."""
    return batches > MOST_PRODUCTS


def product_number(batches: int, integer: str) -> Index:
    """The number of the block's product, of C type ``integer``. Where x has it, it is the variable
    ``number`` that :func:`number_lines` declares."""
    return index("number" if x_numbers(batches) else f"({integer})blockIdx.z", batches)


def number_lines(batches: int, tiles: int) -> list[str]:
    """C lines that the others need, in a launch of ``tiles`` blocks of each product along x."""
    return [f"const i64 number = blockIdx.x / {tiles};"] if x_numbers(batches) else []
