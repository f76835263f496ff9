"""Count the keys that blocks of rows visit, where conditions bound the keys of each row."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.products.splitting import Part


class VisitedTiles:
    """The tiles of keys that each block of rows of a chain visits: from the tile with the first key
    of any of its rows to the last key of any. Bounds that depend on tables or other products are
    ignored.
    """

    def __init__(self, chained: RowsAndKeys) -> None:
        self._low, self._high = _spans(chained)
        self._known: dict[tuple[int, int], tuple[float, float]] = {}

    def of(self, rows: Any, keys: Any) -> tuple[np.ndarray, np.ndarray]:
        """Count, for blocks of ``rows`` rows and tiles of ``keys`` keys, both numbers or arrays:
        how many tiles the blocks of a product meet, and how many scores they compute."""
        pairs = np.stack(np.broadcast_arrays(np.atleast_1d(rows), np.atleast_1d(keys)), axis=1)
        distinct, places = np.unique(pairs.astype(np.int64), axis=0, return_inverse=True)
        found = np.array([self._met(int(r), int(k)) for r, k in distinct])
        tiles, scores = found[places.reshape(-1)].T
        return tiles, scores

    def _met(self, rows: int, keys: int) -> tuple[float, float]:
        if (rows, keys) not in self._known:
            starts = np.arange(0, len(self._low), rows)
            first = np.minimum.reduceat(self._low, starts) // keys * keys
            reached = np.maximum(np.maximum.reduceat(self._high, starts) - first, 0)
            count = np.minimum(rows, len(self._low) - starts)
            tiles = float((-(-reached // keys)).sum())
            self._known[rows, keys] = tiles, float((reached * count).sum())
        return self._known[rows, keys]


def _spans(chained: RowsAndKeys) -> tuple[np.ndarray, np.ndarray]:
    """Return the first key of each row of a product, and one more than the last."""
    count, extent, key = chained.row_count, chained.key.extent, chained.key.name
    low, high = np.zeros(count, np.int64), np.full(count, extent, np.int64)
    values = _values(chained.rows)
    for index in chained.bounds:
        if index.without([key, *values]).terms:
            continue
        steps = ((index.coefficient(name), value) for name, value in values.items())
        rest = sum((step * value for step, value in steps), np.full(count, index.constant))
        step = index.coefficient(key)
        if step > 0:
            low = np.maximum(low, -(rest // step))
        elif step < 0:
            high = np.minimum(high, rest // -step + 1)
    return low, np.maximum(high, low)


def _values(parts: Sequence[Part]) -> dict[str, np.ndarray]:
    """Return the value of each part in each row, the last part the fastest."""
    grids = np.indices([part.extent for part in parts])
    return {part.name: grid.reshape(-1) for part, grid in zip(parts, grids, strict=True)}
