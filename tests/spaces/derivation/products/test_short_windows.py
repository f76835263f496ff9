"""Matrices of sums over short windows, against the sums themselves."""

from __future__ import annotations

from fractions import Fraction
from itertools import product

import pytest

from tilewright.spaces.derivation.products.short_windows import MOST_READS, Matrix, short_windows

PAIRS = [(m, r) for m, r in product(range(1, 7), range(2, 7)) if m + r - 1 <= MOST_READS]


def applied(matrix: Matrix, vector: list[Fraction]) -> list[Fraction]:
    return [sum((a * b for a, b in zip(row, vector, strict=True)), Fraction(0)) for row in matrix]


@pytest.mark.parametrize(("outputs", "taps"), PAIRS)
def test_outputs_are_the_sums_over_their_windows_exactly(outputs, taps):
    short = short_windows(outputs, taps)
    image = [Fraction(3 * k * k - 7 * k + 2, 5) for k in range(short.reads)]
    filters = [Fraction(k**3 - 4, 3) for k in range(taps)]
    products = [
        a * b
        for a, b in zip(applied(short.filter, filters), applied(short.image, image), strict=True)
    ]
    sums = [sum(image[i + k] * filters[k] for k in range(taps)) for i in range(outputs)]
    assert applied(short.output, products) == sums


def test_images_are_multiplied_by_whole_numbers():
    for outputs, taps in PAIRS:
        coefficients = [c for row in short_windows(outputs, taps).image for c in row]
        assert {c.denominator for c in coefficients} == {1}


def test_more_outputs_are_less_exact():
    """Two outputs of three taps are nearly as exact as the sums, whose variance is 3."""
    assert short_windows(2, 3).growth == 5.0
    assert short_windows(4, 3).growth > 25.0
