"""The product of a batch that a block works on: its number is blockIdx.z, or part of blockIdx.x.

Launches are limited along z, so larger batches are numbered along x.
"""

from __future__ import annotations

from tilewright.spaces.algebra.index import Index, index

MOST_PRODUCTS = 65_535
"""The largest extent of a launch along z."""


def x_numbers(batches: int) -> bool:
    """Return true if ``batches`` products are numbered along x, after the tiles of each."""
    return batches > MOST_PRODUCTS


def product_number(batches: int, integer: str) -> Index:
    """Return the number of the block's product, of C type ``integer``.

    Where x numbers products, it is the variable ``number`` that :func:`number_lines` declares.
    """
    return index("number" if x_numbers(batches) else f"({integer})blockIdx.z", batches)


def number_lines(batches: int, tiles: int) -> list[str]:
    """Print the declaration of ``number``, if x numbers products; ``tiles`` is the tiles of
    each."""
    return [f"const i64 number = blockIdx.x / {tiles};"] if x_numbers(batches) else []
