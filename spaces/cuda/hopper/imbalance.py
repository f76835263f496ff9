"""The imbalance of a persistent grid, for whole populations of schedules.

See ``spaces.cuda.hopper.grid``: clusters take places of the order in turns, and some places hold no
tile, where clusters or bands reach beyond the output.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.hopper.sizes import HopperSizes
from tilewright.spaces.cuda.target import CudaTarget


def imbalance(sizes: HopperSizes, target: CudaTarget, c: Any) -> Any:
    """Return the tiles of the busiest multiprocessor over their mean, at least 1."""
    multiprocessors = target.multiprocessors
    m, n = sizes.cluster(c)
    together = np.where(c["merge"] == "cluster", c["splits"], 1)
    size = m * n * together
    work = sizes.product.batches * _places(sizes, c) * (c["splits"] // together)
    at_once = np.minimum(work, np.maximum(multiprocessors * c["blocks_per_sm"] // size, 1))
    turns, last = work // at_once, work % at_once
    busiest = turns * ceil_div(at_once * size, multiprocessors)
    busiest = busiest + ceil_div(last * size, multiprocessors)
    mean = sizes.tiles(c) * c["splits"] / multiprocessors
    return np.maximum(busiest / np.maximum(mean, 1.0), 1.0)


def _places(sizes: HopperSizes, c: Any) -> Any:
    """Return the places of the order for clusters of tiles, those without a tile included."""
    m, n = sizes.cluster(c)
    swapped, (rows, columns) = c["swap_ab"], sizes.shape(c)
    high, wide = ceil_div(rows, np.where(swapped, n, m)), ceil_div(columns, np.where(swapped, m, n))
    along_columns = c["raster"] == "along_columns"
    banded = _banded(np.where(along_columns, high, wide), c["raster_group"])
    in_bands = banded * np.where(along_columns, wide, high)
    return np.where(c["raster"] == "hilbert", high * wide, in_bands)


def _banded(tiles: Any, group: Any) -> Any:
    """Return ``tiles`` rounded up to whole bands, all equally high and at most ``group`` high."""
    bands = ceil_div(tiles, group)
    return bands * ceil_div(tiles, bands)
