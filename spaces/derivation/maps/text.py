"""Indices of loops as C text, and comparisons in their simplest form."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.spaces.algebra.atoms import Atom
from tilewright.spaces.algebra.index import Index


def index_text(index: Index, atom: Callable[[Atom], str]) -> str:
    """Return an index as a C expression that is safe in a product, with the text of ``atom`` for
    each."""
    words = [atom(a) if factor == 1 else f"{factor} * {atom(a)}" for a, factor in index.terms]
    if index.constant or not words:
        words.append(str(index.constant))
    return words[0] if len(words) == 1 and not index.constant else f"({' + '.join(words)})"


def simplest(index: Index, operator: str) -> tuple[Index, str]:
    """Return ``index operator 0``, of fewer loops if it can be: ``64 * p + q - 64 < 0`` is
    ``p - 1 < 0`` where ``q`` is below 64."""
    if operator in (">", "<="):
        index, operator = index - 1, {">": ">=", "<=": "<"}[operator]
    if operator in ("<", ">="):
        for divisor in sorted({abs(factor) for _, factor in index.terms} - {1}, reverse=True):
            quotient = (index // divisor).ordered
            if quotient.names < index.names:
                return quotient, operator
    return index, operator
