"""Find the keys that count for a row from the conditions of a program, by interval arithmetic.

A condition that is a sum of integer multiples of parts, such as ``j <= i + 3``, bounds the keys of
a row from one side: ``c * key + rest >= 0``, where ``rest`` depends on the row alone. The least and
the greatest value of ``rest`` over some rows give the keys that count for any of them, and the keys
that count for all. Tiles outside the first range are never visited; tiles inside the second test
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.products.splitting import Indexing
from tilewright.spaces.language.affine import differences
from tilewright.spaces.language.tree import Comparison


def bounding_indices(
    conditions: Iterable[Comparison], indexing: Indexing, key: str
) -> tuple[tuple[Index, ...], tuple[Comparison, ...]]:
    """Return the indices that are not negative where conditions hold, and the conditions that are
    none."""
    bounding: list[Index] = []
    others: list[Comparison] = []
    for condition in conditions:
        found = [indexing.of(normal) for normal in differences(condition, whole=indexing.tables)]
        if found and all(index.step(key) is not None for index in found):
            bounding += found
        else:
            others.append(condition)
    return tuple(bounding), tuple(others)
