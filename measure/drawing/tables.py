"""Sorted tables that are seldom drawn: all rows in one segment, empty segments at the ends."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace

import numpy as np

from measure.drawing.interfaces import Draw
from measure.drawing.programs import ProgramDraw
from spaces.language.program import Entries, Operand


def with_other_tables(draw: Draw) -> Iterator[Draw]:
    """The same problem with tables of every kind, one after the other; none if it has no sorted
    table."""
    if not isinstance(draw, ProgramDraw):
        return
    tables = [o for o in draw.workload.program.operands if o.drawn and o.drawn.sorted]
    kinds = (list(_kinds(table)) for table in tables)
    for entries in zip(*kinds, strict=True):
        given = {table.name: found for table, found in zip(tables, entries, strict=True)}
        yield replace(draw, inputs={**draw.inputs, **given})


def _kinds(table: Operand) -> Iterator[np.ndarray]:
    """All rows in the first segment; all in the last; a row each; none in the first and last."""
    drawn = table.drawn or Entries(1)
    row, last = np.arange(table.size), drawn.below - 1
    between = 1 + row * max(last - 1, 1) // table.size
    found = (0 * row, 0 * row + last, np.minimum(row, last), np.minimum(between, last))
    for entries in found:
        yield entries.astype(table.element.numpy).reshape(table.shape)
