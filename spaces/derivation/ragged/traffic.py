"""Counts of what rows read and leave, on all targets.

The number of a row's entries is not known before a call. Rows are taken to be of average length;
the longest one is estimated from the skew of the table's draw, if it has one.
"""

from __future__ import annotations

from math import prod

from tilewright.spaces.derivation.ragged.view import RaggedView, Step


def longest_row(view: RaggedView) -> float:
    """Estimate the entries of the longest row, as the table of ranges is drawn."""
    drawn = view.program.operand[view.range.table].drawn
    mean = view.entries / view.rows
    if drawn is None or not drawn.skew:
        return min(float(view.entries), 4.0 * mean + 4.0)
    return min(float(view.entries), mean * view.rows ** (1.0 / (drawn.skew - 1.0)) + 1.0)


def inner_points(view: RaggedView, step: Step) -> int:
    """Return the number of points of a step at each entry."""
    return prod(view.program.shape((*step.kept, *step.inner)))


def gathered_elements(view: RaggedView) -> float:
    """Return the number of elements that entries of tables choose."""
    total = 0.0
    for step in view.steps:
        for read in dict.fromkeys(step.body.value_reads):
            place = view.places[read]
            if place.entries:
                axes = [a for a in (*step.kept, *step.inner) if a in place.names]
                total += view.entries * prod(view.program.shape(tuple(axes)))
    return total


def left_elements(view: RaggedView) -> float:
    """Return the number of elements that steps store at each entry."""
    return float(sum(view.elements(step) for step in view.steps if step.along))
