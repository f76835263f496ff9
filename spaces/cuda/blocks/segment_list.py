"""The list of segments of rows in shared memory, by which persistent blocks find their tiles.

The rows of a grouped product (experts, say) come in segments, which a sorted table describes at run
time. First a block looks up where each segment starts: some lanes of a warp search together, each
at one of several places at a time. It then counts the tiles of rows before each segment, so that
tiles have numbers without gaps; numbers past the last tile are passed over. A binary search in the
list tells which rows a tile has. Whatever the table holds, nothing outside of the arrays is read or
written, and all blocks make the same list.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.derivation.products.view import Segments

WORD = 4
LANES = (2, 4, 8, 16, 32)
"""Numbers of lanes that may search for a segment together."""


def list_bytes(segments: Segments | None) -> int:
    """Return the bytes of the list; a multiple of 8, and 0 without segments.

    It has the first row of each segment and the end of the last, then the number of tiles before
    each segment and in all.
    """
    return 2 * WORD * (segments.count + 1) if segments else 0


@dataclass(frozen=True)
class SegmentList:
    """The list at offset ``at`` of shared memory, for tiles of ``rows`` rows.

    ``table`` is the C name of the pointer to the table of segments; ``threads`` are those of a
    block.
    """

    segments: Segments
    table: str
    rows: int
    threads: int
    at: int

    @property
    def _count(self) -> int:
        return self.segments.count

    @property
    def _before(self) -> str:
        """C text of the address of the numbers of tiles before each segment."""
        return f"shared + {self.at + WORD * (self._count + 1)}"

    def make(self) -> list[str]:
        """Print how all threads of a block make the list and declare ``row_tiles``.

        ``row_tiles`` is the number of tiles of rows in all segments. Lines read ``shared``.
        """
        return [
            *self._search(),
            "tw::sync_block();",
            "if (threadIdx.x < 32) {",
            *(f"  {line}" for line in self._number()),
            "}",
            "tw::sync_block();",
            f"const int row_tiles = tw::load_shared<i32>({self._before} + {WORD * self._count});",
        ]

    def _search(self) -> list[str]:
        """Print how lanes search for the first row of each segment.

        In each round, the lanes of a group look at equally many places of the remaining range.
        """
        lanes = min(LANES, key=self._loads)
        at_once = self.threads // lanes
        masks = [1 << n for n in range(5) if 1 << n < lanes]
        return [
            f"for (int first = 0; first <= {self._count}; first += {at_once}) {{",
            f"  const int e = first + (int)threadIdx.x / {lanes};",
            f"  int low = 0, high = {self.segments.table.size};",
            f"  for (int round = 0; round < {self._rounds(lanes)}; round++) {{",
            f"    const int step = (high - low + {lanes - 1}) / {lanes};",
            f"    const int place = low + (int)threadIdx.x % {lanes} * step;",
            f"    int below = place < high && tw::load_global({self.table} + place) < e;",
            *(f"    below += tw::shuffle_xor(below, {mask});" for mask in masks),
            "    const int end = low + below * step;",
            "    high = end < high ? end : high;",
            "    low = below ? low + (below - 1) * step + 1 : low;",
            "  }",
            f"  if (threadIdx.x % {lanes} == 0 && e <= {self._count})",
            f"    tw::store_shared(shared + {self.at} + {WORD} * e, low);",
            "}",
        ]

    def _rounds(self, lanes: int) -> int:
        """Return how many rounds ``lanes`` lanes need until the range is empty."""
        remaining, found = self.segments.table.size, 0
        while remaining:
            remaining, found = ceil_div(remaining, lanes) - 1, found + 1
        return found

    def _loads(self, lanes: int) -> int:
        """Return how many loads follow each other if ``lanes`` lanes search for a segment."""
        return self._rounds(lanes) * ceil_div(self._count + 1, self.threads // lanes)

    def _number(self) -> list[str]:
        """Print how a warp adds up tiles: a prefix sum over 32 segments at a time."""
        start = f"tw::load_shared<i32>(shared + {self.at} + {WORD} * e"
        return [
            "int before = 0;",
            f"for (int first = 0; first <= {self._count}; first += 32) {{",
            "  const int lane = (int)threadIdx.x, e = first + lane;",
            f"  const int long_as = e < {self._count} ? {start} + {WORD}) - {start}) : 0;",
            f"  const int own = long_as > 0 ? (long_as + {self.rows - 1}) / {self.rows} : 0;",
            "  int sum = own;",
            "  #pragma unroll",
            "  for (int step = 1; step < 32; step *= 2) {",
            "    const int other = tw::shuffle(sum, lane - step);",
            "    if (lane >= step) sum += other;",
            "  }",
            f"  if (e <= {self._count})",
            f"    tw::store_shared({self._before} + {WORD} * e, before + sum - own);",
            "  before += tw::shuffle(sum, 31);",
            "}",
        ]

    def skip(self) -> list[str]:
        """Print how a loop goes on to the next tile where ``tile_row`` has no rows."""
        return ["if (tile_row >= row_tiles) continue;"]

    def find(self) -> list[str]:
        """Print how a tile's ``segment``, ``first_row`` and ``end_row`` are declared from
        ``tile_row``."""
        return [
            f"int segment = 0, last_segment = {self._count - 1};",
            "while (segment < last_segment) {",
            "  const int middle = (segment + last_segment + 1) / 2;",
            f"  if (tw::load_shared<i32>({self._before} + {WORD} * middle) <= tile_row) {{",
            "    segment = middle;",
            "  } else {",
            "    last_segment = middle - 1;",
            "  }",
            "}",
            f"const u32 listed = shared + {self.at} + {WORD} * segment;",
            f"const int tiles_before = tw::load_shared<i32>(listed + {WORD * (self._count + 1)});",
            "const int first_row = tw::load_shared<i32>(listed)"
            f" + (tile_row - tiles_before) * {self.rows};",
            f"const int after = tw::load_shared<i32>(listed + {WORD});",
            f"const int tile_end = first_row + {self.rows};",
            "const int end_row = tile_end < after ? tile_end : after;",
        ]
