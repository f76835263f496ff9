"""The ways of a thin kernel to multiply, by the decision ``multiply``, in numbers.

Their code is in ``spaces.cuda.thin.multiply`` and ``matrices``.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.thin.product import FRAGMENT


@dataclass(frozen=True)
class Way:
    """A way to multiply.

    ``sums`` returns the sums of a thread for ``few`` rows and its columns; ``multiplies`` its
    instructions for as many rows and its elements of the large operand. If it uses ``matrices``,
    that is ``mma.sync``, which takes this many of a thread's ``columns`` at once.
    """

    matrices: bool
    columns: int
    sums: Callable[[int, Any], Any]
    multiplies: Callable[[int, Any], Any]


WAYS = {
    "fma": Way(False, 1, lambda few, columns: few * columns, lambda few, n: n * few),
    "mma": Way(
        True,
        2,
        lambda few, columns: ceil_div(few, FRAGMENT) * (columns // 2) * 4,
        lambda few, n: n * ceil_div(few, FRAGMENT) // 8,
    ),
    "mma_turned": Way(True, 1, lambda few, columns: columns * 4, lambda few, n: n // 4),
}


def by_way(c: Any, number: Callable[[Way], Any]) -> Any:
    """Return a number of each schedule's way."""
    numbers = [number(way) for way in WAYS.values()]
    return np.select([c["multiply"] == name for name in WAYS], numbers)
