"""The tiles of outputs, and how workers share them.

All of it works on integers and, element by element, on NumPy arrays of them, but for properties
that name loops.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from tilewright.spaces.derivation.kept.cutting import Cutting
from tilewright.spaces.derivation.kept.tiles import Segment, segments
from tilewright.spaces.derivation.maps.nest import Loop

INNER, MIDDLE, OUTER = "inner", "middle", "outer"
"""Values of the decision ``order``: the place of the loop over vectors among the kept loops."""
KEPT, REDUCED = "kept", "reduced"
"""Values of the decision ``parallel_over``: the loops that workers share."""


@dataclass(frozen=True)
class Tiling(Cutting):
    """The tiles that decisions lead to, for vectors of ``lanes``."""

    lanes: int

    @property
    def lane_elements(self) -> Any:
        """Elements of a tile's vectors side by side."""
        return self.values["vectors"] * self.lanes

    # -- of one schedule ----------------------------------------------------------------------

    def size(self, loop: Loop) -> int:
        """Return the number of turns of a kept loop in a tile."""
        if loop == self.view.lane:
            return int(self.values["vectors"]) * self.lanes
        return int(self.values["coarsening"]) if loop == self.across else 1

    def segments(self, loop: Loop) -> Sequence[Segment]:
        """Return the blocks of a kept loop, in segments with code of their own.

        Only the loops that tiles are cut from have several segments; others are tested at run time.
        """
        if loop in (self.across, self.view.lane):
            return segments(self.view, loop, self.size(loop))
        return [Segment(0, loop.extent, 1)]

    @property
    def order(self) -> Sequence[Loop]:
        """The kept loops, the outermost first."""
        *others, lane = self.view.kept
        places = {INNER: len(others), MIDDLE: max(len(others) - 1, 0), OUTER: 0}
        place = places[self.values["order"]]
        return (*others[:place], lane, *others[place:])

    @property
    def workers(self) -> int:
        """The number of workers of the pass that reads."""
        return int(self.values["workers"])

    @property
    def splits(self) -> bool:
        """True if workers share a loop that is reduced over."""
        return bool(self.values["parallel_over"] == REDUCED)

    @property
    def shared(self) -> Loop:
        """The kept loop that workers share: the one with most blocks, the first of equal ones."""
        return self.view.kept[int(np.argmax(np.stack(np.broadcast_arrays(*self.counts))))]

    @property
    def sharers(self) -> Any:
        """The number of workers of the pass that writes outputs."""
        return np.minimum(self.values["workers"], self.longest)

    # -- of many ------------------------------------------------------------------------------

    @property
    def longest(self) -> Any:
        """The number of blocks of the loop that has most."""
        return np.stack(np.broadcast_arrays(*self.counts)).max(axis=0)
