"""The prologue of a product: values computed as an operand is loaded, by casts, scales or
normalisation.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.derivation.products.addresses import Address, addresses_of, why_not_separable
from tilewright.spaces.derivation.products.roles import Roles
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Expression, Read


@dataclass(frozen=True)
class Load:
    """One factor of a product: its ``value`` for each row (or column) and depth, and where the
    arrays have what it needs. ``obstacle`` says in words what keeps places from adding up."""

    value: Expression
    places: tuple[Address, ...]
    obstacle: str | None

    @property
    def plain(self) -> bool:
        """Tell whether the factor is a plain array: nothing is computed and no read is out of
        bounds.
        """
        return isinstance(self.value, Read) and not self.places[0].bounds


def loads(program: Program, found: Roles) -> tuple[Load, Load]:
    """Derive how the left and the right factor are loaded."""
    left, right = (_load(program, found, factor) for factor in (found.left, found.right))
    return left, right


def _load(program: Program, found: Roles, factor: Expression) -> Load:
    all_places = addresses_of(program, found, factor)
    obstacles = (why_not_separable(place, found) for place in all_places)
    return Load(factor, all_places, next(filter(None, obstacles), None))
