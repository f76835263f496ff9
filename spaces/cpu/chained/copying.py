"""The C of rows that are computed into scratch memory, a vector after the other."""

from __future__ import annotations

from spaces.cpu.chained.access import Access
from spaces.cpu.rows.scopes import VectorScope
from spaces.derivation.products.splitting import Part
from spaces.language.tree import Expression


def copied_row(access: Access, value: Expression, part: Part, to: str, lanes: int) -> list[str]:
    """The lines that compute ``value`` for all points of ``part`` and store them from ``to`` on,
    whole vectors; ``access`` knows where the row is."""
    lines: list[str] = []
    row = VectorScope("g", access.of_row, lines)
    body: list[str] = []
    bounded = part.extent % lanes > 0
    scope = VectorScope("x", lambda node: access.along(node, part, "at", bounded), body, row)
    text = scope.text(value)
    body.append(f"tw_store_float32({to} + at, {text});")
    head = f"for (long at = 0; at < {part.extent}; at += {lanes}) {{"
    return [*lines, head, *(f"  {line}" for line in body), "}"]
