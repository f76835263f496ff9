"""How many tiles and scores blocks of rows have, against a count of pairs one by one."""

import numpy as np
import pytest

from tests.spaces.chained_programs import form
from tilewright.spaces.derivation.chained.view import Chained, chained_of
from tilewright.spaces.derivation.chained.visited_tiles import VisitedTiles
from tilewright.spaces.language import program

ROWS, KEYS = np.arange(45), np.arange(53)
SEEN = {
    "grouped heads": lambda i, j: j >= 0,
    "causal": lambda i, j: j <= i + 8,
    "window at both ends": lambda i, j: (j - i < 5) & (i - j < 5),
    "prefix lengths": lambda i, j: j >= 0,
    "lengths and causal": lambda i, j: j <= i + 8,
}
"""What rows are bounded by, but for what tables say."""


def counted(name: str, rows: int, keys: int) -> tuple[int, int]:
    """Of the two heads whose rows one product has."""
    seen = np.tile(SEEN[name](ROWS[:, None], KEYS[None]) & (ROWS[:, None] >= 0), (2, 1))
    tiles = scores = 0
    for start in range(0, len(seen), rows):
        block = seen[start : start + rows]
        (found,) = np.nonzero(block.any(axis=0))
        if len(found):
            reached = found[-1] + 1 - found[0] // keys * keys
            tiles += -(-reached // keys)
            scores += reached * len(block)
    return tiles, scores


@pytest.mark.parametrize("name", SEEN)
def test_meetings_are_those_of_the_pairs_that_count(name):
    found = chained_of(form(name))
    assert isinstance(found, Chained)
    sizes = [(rows, keys) for rows in (1, 7, 16, 90, 128) for keys in (1, 8, 53, 64)]
    tiles, scores = VisitedTiles(found).of(*np.array(sizes).T)
    assert list(zip(tiles, scores, strict=True)) == [counted(name, *size) for size in sizes]


def test_a_row_for_each_product_meets_its_own_keys():
    text = "where j <= 20\ny[b,e] = sum[j](softmax[j](sum[d](q[b,d] * k[b,j,d])) * v[b,j,e])"
    found = chained_of(program(text, b=3, j=53, d=8, e=8))
    assert isinstance(found, Chained)
    tiles, scores = VisitedTiles(found).of(1, np.array([8, 16, 53]))
    assert (tiles.tolist(), scores.tolist()) == ([3, 2, 1], [21, 21, 21])
