"""Operands of which each lane reads one run of memory of its own over all taps, such as the
filters of channels."""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.algebra.index import Index, total
from tilewright.spaces.derivation.kept.view import Bounded, KeptView


def tap_index(view: KeptView, access: Bounded) -> Index | None:
    """Return the number of a tap, if an access has the elements of all of them side by side, and
    lanes apart by at least so many; None if not, or if it has one alone."""
    steps, step = [], 1
    for loop in reversed(view.taps):
        steps.append((loop.index, step))
        if access.step(loop.name) != step:
            return None
        step *= loop.extent
    apart = abs(access.step(view.lane.name) or 0) >= step
    return total(steps) if step > 1 and apart and not access.bounds else None


def same_in_tile(view: KeptView, access: Bounded, c: Any) -> Any:
    """Tell whether all turns of the loop ``across`` within a tile read the same elements of an
    access, by columns of decisions. They differ, for example, in filters of several groups.
    """
    unmoved = [loop.name for loop in view.kept[:-1] if access.step(loop.name) == 0]
    return (c["coarsening"] == 1) | np.isin(c["coarsened_axis"], unmoved)
