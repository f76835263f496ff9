"""What is said of configurations whose parameters mean nothing to us."""

from __future__ import annotations

import numpy as np

from scheduler.replay.parameters import parameter_quantities

DOMAINS = {"block": (32, 64, 128), "tile": (1, 2, 3), "shared": (0, 1), "order": ("nm", "mn")}
COLUMNS = {
    "block": np.array([32, 128]),
    "tile": np.array([3, 2]),
    "shared": np.array([0, 1]),
    "order": np.array(["mn", "nm"]),
}


def test_sizes_are_multiplied_and_divided() -> None:
    found = parameter_quantities(DOMAINS, COLUMNS)
    np.testing.assert_allclose(2 ** found["product.block.tile"], [96, 256])
    np.testing.assert_allclose(2 ** found["ratio.block.tile"], [32 / 3, 64])


def test_switches_and_words_count_by_their_place() -> None:
    found = parameter_quantities(DOMAINS, COLUMNS)
    np.testing.assert_allclose(2 ** found["product.block.shared"], [32, 256])
    np.testing.assert_allclose(2 ** found["product.shared.order"], [2, 2])
    assert len(found) == 2 * 6


def test_nothing_is_said_of_a_single_parameter() -> None:
    assert parameter_quantities({"block": (1, 2)}, {"block": np.array([1, 2])}) == {}
