"""Comparisons of indices with zero in their simplest form."""

from __future__ import annotations

from tilewright.spaces.algebra.index import Index


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
