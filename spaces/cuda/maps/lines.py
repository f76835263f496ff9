"""Assignment of vectors to lanes by lines of memory, for rows that begin anywhere."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.cuda.maps.context import MapContext
from tilewright.spaces.cuda.maps.sizes import LINE, LINE_BYTES, splits_sectors
from tilewright.spaces.derivation.maps.nest import Loop
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.kernels.body import Body

AHEAD = "ahead"
"""The C variable of the vectors between the tile's first element and the first that begins a
line."""


@dataclass(frozen=True)
class Lines:
    """Vectors of ``vector`` elements of ``access``, side by side along ``loop``, that lanes move.

    A tile has the elements from ``start`` on.
    """

    context: MapContext
    access: Access
    loop: Loop
    start: str
    vector: int

    @property
    def begin(self) -> bool:
        """True if lanes begin with a line, and not with the tile."""
        begin = self.context.values.get("lanes") == LINE
        return begin and splits_sectors(self.context.plane, self.access)

    @property
    def _elements(self) -> int:
        return LINE_BYTES // self.access.array.element.bytes

    def ahead(self, body: Body, place: Index) -> None:
        """Write :data:`AHEAD`, if ``place`` needs it; the other loops' variables are set before."""
        if AHEAD not in place.names:
            return
        offset = self.access.offset - self.loop.index
        start = f"{self.context.numbers.whole(offset)} + {self.start}"
        count = f"(int)(-({start}) & {self._elements - 1}) / {self.vector}"
        body.let("const int", AHEAD, count)

    def place(self, number: Index, vectors: int) -> Index:
        """Return which of a tile's ``vectors`` the lane ``number`` moves."""
        if not self.begin:
            return number
        return (number + index(AHEAD, self._elements // self.vector)) % vectors
