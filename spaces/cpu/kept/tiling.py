"""How outputs are cut into tiles, and tiles shared by workers.

Works on integers and, element by element, on NumPy arrays of them, but for what names loops.
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
"""Where the loop over vectors is among the kept loops, by the decision ``order``."""
KEPT, REDUCED = "kept", "reduced"
"""Which loops workers share, by the decision ``parallel_over``."""


@dataclass(frozen=True)
class Tiling(Cutting):
    """The tiles that decisions lead to, where vectors have so many ``lanes``."""

    lanes: int

    @property
    def lane_elements(self) -> Any:
        """Elements of a tile's vectors side by side."""
        return self.values["vectors"] * self.lanes

    # -- of one schedule ----------------------------------------------------------------------

    def size(self, loop: Loop) -> int:
        """Turns of a kept loop that a tile has."""
        if loop == self.view.lane:
            return int(self.values["vectors"]) * self.lanes
        return int(self.values["coarsening"]) if loop == self.across else 1

    def segments(self, loop: Loop) -> Sequence[Segment]:
        """The blocks of a kept loop, those that have code of their own apart: of the loops that
        tiles are cut from. Others are tested as they run."""
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
        """Of the pass that reads."""
        return int(self.values["workers"])

    @property
    def splits(self) -> bool:
        """Whether workers share what is reduced over."""
        return bool(self.values["parallel_over"] == REDUCED)

    @property
    def shared(self) -> Loop:
        """The kept loop that workers share: the one with most blocks, the first of equals."""
        return self.view.kept[int(np.argmax(np.stack(np.broadcast_arrays(*self.counts))))]

    @property
    def sharers(self) -> Any:
        """Workers of the pass that writes outputs."""
        return np.minimum(self.values["workers"], self.longest)

    # -- of many ------------------------------------------------------------------------------

    @property
    def longest(self) -> Any:
        """Blocks of the loop with most."""
        return np.stack(np.broadcast_arrays(*self.counts)).max(axis=0)
