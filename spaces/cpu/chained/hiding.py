"""Keys that are hidden from a row: the mask of all others, and the weight that says so."""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.spaces.derivation.chains.corrections import positive
from tilewright.spaces.derivation.scopes import Scope
from tilewright.spaces.language.tree import Comparison, Expression

HIDDEN = "-0.0f"
"""The weight of a key that is hidden from a row. In a tile with hidden keys, no other weight is a
negative zero."""


def mask(
    scope: Scope, low: str, high: str, conditions: Iterable[Comparison], number: int | str = ""
) -> str:
    """Write the mask of the keys of a vector that count, and return its variable.

    Keys begin at ``j`` and the vector's ``number``. Those from ``low`` to before ``high`` count, as
    far as ``conditions`` hold.
    """
    scope.lines.append(f"const vi k{number} = tw_ramp(j{number});")
    tests = [f"k{number} >= (int){low}", f"k{number} < (int){high}"]
    tests += map(scope.condition, conditions)
    inside = " & ".join(f"({test})" for test in tests)
    scope.lines.append(f"const vi inside{number} = {inside};")
    return f"inside{number}"


def shown(inside: str | None, weight: Expression, value: str) -> str:
    """Return the weight where a key counts, and :data:`HIDDEN` where it does not."""
    if inside is None:
        return value
    value += "" if positive(weight) else " + tw_set(0.0f)"
    return f"tw_select({inside}, {value}, tw_set({HIDDEN}))"
