"""A profile: how often which sizes of an axis are called."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import pairwise
from math import sqrt

from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.validation.checks import positive

LARGEST_SIZE = 1 << 16
SAMPLES = 24
"""Sizes of one range that stand for all of it, at most."""
EXAMPLE = "such as 1:.3,2-8:.3,9-256:.3,257-4096:.1"
_GOLDEN = (sqrt(5) - 1) / 2


@dataclass(frozen=True)
class Range:
    """Sizes from ``first`` to ``last``, each as likely as the others; ``share`` is that of all."""

    first: int
    last: int
    share: float

    def __str__(self) -> str:
        sizes = f"{self.first}" if self.first == self.last else f"{self.first}-{self.last}"
        return f"{sizes}:{self.share:.9g}"

    @property
    def samples(self) -> list[int]:
        """All sizes if they are few, else some at distances of the golden ratio, which favour no
        multiple of a kernel's size."""
        count = self.last - self.first + 1
        if count <= SAMPLES:
            return list(range(self.first, self.last + 1))
        places = ((place * _GOLDEN) % 1.0 for place in range(1, SAMPLES + 1))
        return sorted({self.first + int(place * count) for place in places})


@dataclass(frozen=True)
class Profile:
    """Ranges of sizes that do not overlap, in order. Their shares add up to 1.

    Sizes below the first range and between two are served as all others are, and count for
    nothing.
    """

    ranges: tuple[Range, ...]

    def __str__(self) -> str:
        return ",".join(map(str, self.ranges))

    @property
    def first(self) -> int:
        """The least size."""
        return self.ranges[0].first

    @property
    def last(self) -> int:
        """The largest size."""
        return self.ranges[-1].last

    @property
    def weights(self) -> dict[int, float]:
        """The probability of each sampled size; the weights add up to 1."""
        return dict(self._weighted())

    def _weighted(self) -> Iterator[tuple[int, float]]:
        for each in self.ranges:
            samples = each.samples
            yield from ((size, each.share / len(samples)) for size in samples)


def doubled_sizes(last: int) -> list[int]:
    """Return the powers of two up to the ``last`` size, and the numbers halfway between two."""
    powers = (1 << place for place in range(last.bit_length()))
    return sorted({size for each in powers for size in (each, each + each // 2) if size <= last})


def as_profile(given: Profile | str) -> Profile:
    """Return ``given`` itself, or the profile of a text like ``1:.3,2-8:.7``. Shares are divided by
    their sum. Raises :class:`InputError` for malformed text and for ranges that overlap."""
    if isinstance(given, Profile):
        return given
    if not isinstance(given, str) or not given.strip():
        raise InputError(f"profile={shown(given)} has no sizes; allowed: SIZES:SHARE, {EXAMPLE}")
    found = sorted((_range(part) for part in given.split(",")), key=lambda each: each.first)
    for before, after in pairwise(found):
        if after.first <= before.last:
            raise InputError(f"profile: {before} and {after} overlap; allowed: each size once")
    total = sum(each.share for each in found)
    return Profile(tuple(Range(each.first, each.last, each.share / total) for each in found))


def _range(part: str) -> Range:
    sizes, colon, share = part.strip().partition(":")
    first, dash, last = sizes.partition("-")
    least = _size(first, part)
    most = _size(last, part) if dash else least
    if not colon or most < least:
        raise InputError(f"profile: {shown(part)} is no range; allowed: SIZES:SHARE, {EXAMPLE}")
    try:
        number = float(share)
    except ValueError:
        raise InputError(f"profile: {shown(share)} is no share; allowed: {EXAMPLE}") from None
    return Range(least, most, positive(f"profile: the share of {sizes}", number))


def _size(word: str, part: str) -> int:
    if not word.isdecimal() or not word.isascii() or not 1 <= int(word[:9]) <= LARGEST_SIZE:
        raise InputError(
            f"profile: {shown(word)} of {shown(part)} is no size; "
            f"allowed: whole numbers from 1 to {LARGEST_SIZE}"
        )
    return int(word[:9])


PROBED = as_profile("1-64:1")
"""Sizes at which a workload with an open axis is read, to see whether it has a family."""
