"""The ways of a thin kernel to multiply, by the decision ``multiply``, in numbers; their code is in
``spaces.cuda.thin.multiply`` and ``matrices``."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.thin.product import FRAGMENT


@dataclass(frozen=True)
class Way:
    """``sums`` are the sums of a thread, of so ``few`` rows and its columns; ``multiplies`` its
    instructions, of so few rows and its elements of the large operand. One by ``matrices`` is
    ``mma.sync``, which takes so many of a thread's ``columns`` at once."""

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
    """A number of each schedule's way."""
    numbers = [number(way) for way in WAYS.values()]
    return np.select([c["multiply"] == name for name in WAYS], numbers)
