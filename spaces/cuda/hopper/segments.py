"""Rows in segments, as blocks that stay and walk over tiles find them: by a list in shared memory.

Before all else a block looks up where each segment starts, by searches in which lanes of a warp
look at several places at a time, and adds up how many tiles of rows there are before it. So tiles
have numbers without gaps, those past the last one are passed over, and what a tile's rows are
follows from a search in the list. Whatever the table holds, nothing outside of the arrays is read
or written, and all blocks find the same list.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Strided
from tilewright.spaces.cuda.blocks.gathered import Gathered
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.hopper.tile import MatrixTile, numbered
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.derivation.products.view import Segments
from tilewright.spaces.language.program import Operand

WORD = 4
LANES = (2, 4, 8, 16, 32)
"""Lanes that may look for a segment together."""
PARTS = (0, 16, 32, 64)
"""Rows that tiles of segments are trimmed to; 0 for tiles that are loaded and multiplied whole."""


def list_bytes(segments: Segments | None) -> int:
    """Bytes of the list: where each segment starts and the last one ends, and as many numbers of
    tiles; a multiple of 8."""
    return 2 * WORD * (segments.count + 1) if segments else 0


@dataclass(frozen=True)
class SegmentList:
    """The list at the offset ``at`` of shared memory, for tiles of ``rows`` rows; ``table`` is the
    C name of the pointer to the table, and ``threads`` are those of a block."""

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
        """C text of the address of the numbers of tiles."""
        return f"shared + {self.at + WORD * (self._count + 1)}"

    def make(self) -> list[str]:
        """C lines by which all threads of a block make the list, and declare ``row_tiles``, how
        many tiles have rows. They read ``shared``."""
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
        """Some lanes look for the first row of a segment together, each in turn at one of as many
        places of what remains."""
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
        """How often so many lanes look until nothing remains of the table."""
        remaining, found = self.segments.table.size, 0
        while remaining:
            remaining, found = ceil_div(remaining, lanes) - 1, found + 1
        return found

    def _loads(self, lanes: int) -> int:
        """How many loads wait for each other where so many lanes look for a segment."""
        return self._rounds(lanes) * ceil_div(self._count + 1, self.threads // lanes)

    def _number(self) -> list[str]:
        """A warp adds up the tiles of 32 segments at a time."""
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
        """C lines that go on to the next tile where ``tile_row`` has no rows."""
        return ["if (tile_row >= row_tiles) continue;"]

    def find(self) -> list[str]:
        """C lines that declare the ``segment`` of the tile ``tile_row``, and its rows from
        ``first_row`` to ``end_row``."""
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


@dataclass(frozen=True)
class SegmentTile(MatrixTile):
    """Tiles of the matrix of a block's ``segment``, one of ``count`` that are ``apart`` elements
    apart."""

    count: int
    apart: int

    @property
    def tensor_map(self) -> TensorMapSpec:
        """What one load moves."""
        return numbered(super().tensor_map, [(self.count, self.apart * self.operand.element.bytes)])

    @property
    def _matrix(self) -> tuple[str, str]:
        return "3d", ", segment"


@dataclass(frozen=True)
class TrimmedTile(MatrixTile):
    """Tiles of rows of a segment in parts of ``part`` rows, of which only the first ``parts``, a C
    variable, are loaded and multiplied: those that have rows."""

    part: int

    @property
    def tensor_map(self) -> TensorMapSpec:
        """What one load moves: a part."""
        whole = super().tensor_map
        return replace(whole, box=(whole.box[0], self.part))

    def count(self) -> list[str]:
        """Lines that declare ``parts`` of the tile from ``first_row`` to ``end_row``."""
        return [f"const int parts = (end_row - first_row + {self.part - 1}) / {self.part};"]

    @property
    def part_bytes(self) -> int:
        """Bytes of a part."""
        return self.part * self.depth_bytes

    def load(
        self, to: str, tensor_map: str, barrier: str, start: str, depth: str, priority: str = ""
    ) -> list[str]:
        """Lines by which one thread loads the parts; sharers, numbered ``rank``, in turn."""
        place, at = f"{to} + part * {self.part_bytes}", f"{depth}, {start} + part * {self.part}"
        at += f", {priority}" if priority else ""
        call = f"tma_load_2d({place}, &{tensor_map}, {barrier}, {at})"
        if self.sharers > 1:
            everybody = (1 << self.sharers) - 1
            call = f"tma_multicast_2d({place}, &{tensor_map}, {barrier}, {everybody}, {at})"
        first = "(int)rank" if self.sharers > 1 else "0"
        return [
            "#pragma unroll 1",
            f"for (int part = {first}; part < parts; part += {self.sharers}) tw::{call};",
        ]


def trims_of(product: Tiled) -> bool:
    """Whether tiles can be trimmed: those of rows in segments, each of which runs deep."""
    return isinstance(product, ImplicitProduct) and bool(
        product.view.segments and product.gathered[0].deep
    )


def segment_tile(product: ImplicitProduct, common: tuple[Operand, int, int, int]) -> SegmentTile:
    """Tiles of the right factor, of what :class:`OperandTile` asks for first."""
    gathered, matrix, apart = _matrices(product)
    assert product.view.segments is not None
    assert matrix is not None
    return SegmentTile(*common, matrix, gathered.deep, product.view.segments.count, apart)


def why_no_segment(product: ImplicitProduct) -> str | None:
    """Why TMA cannot bring the matrix of a segment, in words; None if it can."""
    operand, (gathered, matrix, apart) = product.right, _matrices(product)
    size = operand.element.bytes
    if matrix is None:
        return f"{operand.name} has windows, and rows come in segments"
    if not gathered.deep and size != 2:
        return f"{operand.name} is {operand.dtype} and does not run along the depth in memory"
    for distance in (matrix.strides[0], apart):
        if distance * size % 16 or distance == 0:
            return (
                f"{operand.name} has {distance * size} bytes a row or matrix; allowed: 16, 32, ..."
            )
    return None


def _matrices(product: ImplicitProduct) -> tuple[Gathered, Strided | None, int]:
    """The right factor, each of its matrices, and elements from one to the next."""
    gathered, (segment,) = product.gathered[1], product.view.batch
    return gathered, gathered.strided, gathered.place.offset.coefficient(segment.name)
