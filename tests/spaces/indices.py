"""The values of indices at points, read from their structure."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from tilewright.spaces.algebra.atoms import Atom, Entry, Extent, Quotient, Remainder
from tilewright.spaces.algebra.index import Index


def value_of(
    index: Index, variables: Mapping[str, Any], tables: Mapping[str, np.ndarray] | None = None
) -> Any:
    """Return what an index is where its variables are numbers, or arrays that broadcast."""
    terms = (c * _value(atom, variables, tables or {}) for atom, c in index.terms)
    return sum(terms, index.constant)


def _value(atom: Atom, variables: Mapping[str, Any], tables: Mapping[str, np.ndarray]) -> Any:
    match atom:
        case Quotient(dividend, divisor):
            return value_of(dividend, variables, tables) // divisor
        case Remainder(dividend, divisor):
            return value_of(dividend, variables, tables) % divisor
        case Extent(name, multiple=multiple):
            return variables[name] // multiple
        case Entry(table, indices):
            at = [value_of(inner, variables, tables) for inner in indices]
            nearest = [np.clip(i, 0, n - 1) for i, n in zip(at, tables[table].shape, strict=True)]
            return tables[table][tuple(nearest)].astype(np.int64)
    return variables[atom.text]
