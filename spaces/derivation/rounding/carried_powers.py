"""Powers that terms of a state have, and how far they may be off."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import log

import numpy as np

from tilewright.spaces.derivation.recurrent.view import Decay, Recurrence
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.tree import Expression
from tilewright.spaces.numerics.interval import SLACK, Arithmetic

NONE = -1e300
"""The greatest exponent of no terms."""
LITTLE = 0.5
"""The most that an exponent is off if its power is off in proportion."""
Values = Callable[[Expression], tuple[np.ndarray, np.ndarray]]
"""Gives an expression's values, and how far they may be off, at rows, positions, points of inner
axes, and lanes."""


@dataclass(frozen=True)
class Power:
    """Powers, and how far they may be off."""

    value: np.ndarray
    off: np.ndarray | None = None


@dataclass(frozen=True)
class Powers:
    """The powers of a block: of pairs within it, of its terms at its end, of the state before at
    its end, and of this state at each position."""

    pairs: Power
    added: Power
    kept: Power
    read: Power


class Unscaled:
    """No powers."""

    def __init__(self, view: Recurrence) -> None:
        self._exclusive = view.exclusive

    def block(self, part: slice) -> Powers:
        """Return ones, and zeros for later terms."""
        one = np.ones((1, 1, 1, 1))
        mask = _mask(part.stop - part.start, self._exclusive)
        same = Power(one)
        return Powers(Power(mask.astype(np.float64)), same, Power(one[0]), same)


class Scaled:
    """Powers of exponents that grow, with a term for each position; the greatest so far scales the
    state."""

    def __init__(self, view: Recurrence, decay: Decay, values: Values, kind: str) -> None:
        self._exclusive, self._function = view.exclusive, decay.function
        self._arithmetic = Arithmetic.of(kind)
        self._growth, off = values(decay.growth)
        self._term, off_term = values(decay.term)
        self._reading, off_reading = values(decay.reading)
        sums = sum((values(each)[1] for each in decay.sums), np.zeros((1, 1, 1, 1)))
        self._moved = np.abs(self._growth) * (2 * self._arithmetic.unit) + off
        self._off_term, self._off_reading = off_term + sums, off_reading + sums
        self._greatest = np.full((1, 1, 1), NONE)

    def block(self, part: slice) -> Powers:
        """Return the powers of the next block."""
        growth, moved = (_cut(a, part).cumsum(1) for a in (self._growth, self._moved))
        term, reading = _cut(self._term, part), _cut(self._reading, part)
        off_term, off_reading = _cut(self._off_term, part), _cut(self._off_reading, part)
        own = term - growth
        above = reading + growth
        mask = _mask(part.stop - part.start, self._exclusive)
        apart = moved[:, :, None] - moved[:, None]
        pairs = self._power(
            above[:, :, None] + own[:, None],
            apart + off_reading[:, :, None] + off_term[:, None],
            mask,
        )
        read = self._power(above + self._greatest[:, None], moved + off_reading)
        end, last = growth[:, -1], self._greatest
        self._greatest = np.maximum(last + end, (own + growth[:, -1:]).max(1))
        added = self._power(
            own + growth[:, -1:] - self._greatest[:, None], moved[:, -1:] - moved + off_term
        )
        return Powers(pairs, added, self._power(last + end - self._greatest, moved[:, -1]), read)

    def _power(
        self, exponent: np.ndarray, off: np.ndarray, mask: np.ndarray | None = None
    ) -> Power:
        """Return the powers of exponents that are ``off`` beside their rounding, infinitely if they
        may be too large for the type; zeros where the mask does not hold."""
        power = FUNCTIONS[self._function].reference
        relative, absolute = (SLACK * error for error in FUNCTIONS[self._function].error)
        off = off + 2 * self._arithmetic.unit * np.abs(exponent)
        exponent, off = np.broadcast_arrays(exponent, off)
        value = power(exponent)
        natural = off * (log(2) if self._function == "exp2" else 1.0)
        far = off > LITTLE
        further = value * np.expm1(np.where(far, 0.0, natural))
        if far.any():
            further = np.where(far, power(exponent + off) - value, further)
        further = further + (value + further) * relative + absolute
        further = np.where(value + further > self._arithmetic.largest, np.inf, further)
        if mask is not None:
            value, further = np.where(mask, value, 0.0), np.where(mask, further, 0.0)
        return Power(value, further)


def _mask(count: int, exclusive: bool) -> np.ndarray:
    """Tell which terms of a block each of its positions reads."""
    found = np.tri(count, k=-1 if exclusive else 0, dtype=bool)
    return found.reshape(1, count, count, 1, 1)


def _cut(values: np.ndarray, part: slice) -> np.ndarray:
    """Return what all positions share, or what some of them have."""
    count = part.stop - part.start
    if values.shape[1] > 1:
        return values[:, part]
    return np.broadcast_to(values, (values.shape[0], count, *values.shape[2:]))
