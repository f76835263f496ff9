"""Random numbers by counting: what their authors know, and what programs do with them."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.language import program
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.language.philox import philox, random_numbers
from tilewright.spaces.workloads.gradients import gradient

DROPOUT = "y[i, j] = select(random(seed, i, j) < 0.25, 0, x[i, j] / 0.75)"
KNOWN = [  # counter, key, words: kat_vectors of Random123 1.09, philox4x32 of ten rounds
    ((0, 0, 0, 0), (0, 0), (0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8)),
    (
        (0xFFFFFFFF,) * 4,
        (0xFFFFFFFF,) * 2,
        (0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD),
    ),
    (
        (0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344),
        (0xA4093822, 0x299F31D0),
        (0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1),
    ),
]


@pytest.mark.parametrize(("counter", "key", "words"), KNOWN)
def test_words_are_those_of_the_authors(counter, key, words):
    assert tuple(map(int, philox(np.array(counter), np.array(key)))) == words


def test_numbers_are_uniform_and_differ_in_each_argument():
    i, j = np.arange(400)[:, None], np.arange(500)
    found = random_numbers(np.array(3), i, j)
    assert found.min() >= 0
    assert found.max() < 1
    counts = np.histogram(found, 64, (0, 1))[0]
    assert abs(counts / found.size * 64 - 1).max() < 0.1
    for other in (random_numbers(np.array(4), i, j), random_numbers(np.array(3), i + 400, j)):
        assert abs(np.corrcoef(found.ravel(), other.ravel())[0, 1]) < 0.01
    assert len(np.unique(found)) > 0.99 * found.size


def test_arguments_are_rounded_towards_zero_and_bounded():
    odd = np.array([2.9, -5.0, np.inf, -np.inf, 2.0**30])
    plain = np.array([2.0, 0.0, 2.0**24 - 1, 0.0, 2.0**24 - 1])
    np.testing.assert_array_equal(
        random_numbers(odd, odd, odd), random_numbers(plain, plain, plain)
    )


def test_the_gradient_of_a_dropout_draws_the_same_numbers_again():
    made = program(DROPOUT, i=20, j=30)
    back = gradient(made, "x")
    assert [o.name for o in back.operands] == ["dy", "seed"]
    x = np.ones((20, 30), np.float32)
    y = evaluate(made, {"x": x, "seed": np.float32(9)})["y"]
    np.testing.assert_array_equal(evaluate(back, {"dy": x, "seed": np.float32(9)})["dx"], y)
    assert 0.1 < (y == 0).mean() < 0.4


def test_a_random_number_has_no_derivative_by_its_arguments():
    made = program("y[i] = x[i] * random(x[i], i, 0)", i=8)
    assert str(gradient(made, "x").stage["dx"].body) == "dy[i] * random(x[i], i, 0)"


def test_kernels_have_to_return_exactly_what_is_drawn():
    made = program("y[i, j] = random(7, 40 * j + i, j)", i=20, j=30)
    low, high = allowed(made, {})["y"]
    np.testing.assert_array_equal(low, high)
