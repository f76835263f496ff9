"""Find the keys that count for a row from the conditions of a program, by interval arithmetic.

A condition that is a sum of integer multiples of parts, such as ``j <= i + 3``, bounds the keys of
a row from one side: ``c * key + rest >= 0``, where ``rest`` depends on the row alone. The least and
the greatest value of ``rest`` over some rows give the keys that count for any of them, and the keys
that count for all. Tiles outside the first range are never visited; tiles inside the second test
nothing.
"""

from __future__ import annotations

from collections.abc import Iterable

from tilewright.spaces.derivation.products.forms import Form, axes_of
from tilewright.spaces.derivation.products.splitting import Indexing
from tilewright.spaces.language.affine import differences
from tilewright.spaces.language.tree import Comparison


def bounding_forms(
    conditions: Iterable[Comparison], indexing: Indexing, key: str
) -> tuple[tuple[Form, ...], tuple[Comparison, ...]]:
    """Return the forms that are not negative where conditions hold, and the conditions that are
    none."""
    forms: list[Form] = []
    others: list[Comparison] = []
    for condition in conditions:
        found = [indexing.of(form) for form in differences(condition, whole=indexing.limits)]
        if found and all(_steps_along(form, key) for form in found):
            forms += found
        else:
            others.append(condition)
    return tuple(forms), tuple(others)


def _steps_along(form: Form, key: str) -> bool:
    """Tell whether the key occurs only by itself, not within a quotient or an entry of a table."""
    return all(isinstance(atom, str) or key not in axes_of(atom) for atom, _ in form.terms)
