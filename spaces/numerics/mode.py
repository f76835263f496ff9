"""The two promises about errors that a user can ask for: ``strict`` and ``fast``.

Under ``strict`` every output element is as accurate as its own terms allow. ``fast`` also allows
algorithms with weaker bounds, such as Winograd's, where one huge input spoils outputs beside it.
``docs/numerics.md`` lists them.
"""

from __future__ import annotations

from enum import StrEnum

from tilewright.spaces.errors import InputError, shown


class Numerics(StrEnum):
    """A promise about errors, see the module."""

    STRICT = "strict"
    FAST = "fast"


def as_numerics(value: Numerics | str) -> Numerics:
    """Return the mode called ``value``; :class:`InputError` if there is none of that name."""
    if value in tuple(Numerics):
        return Numerics(value)
    raise InputError(f"numerics={shown(value)}; allowed: {', '.join(Numerics)}")
