"""The way of a thin product's small operand into registers: by shared memory, or straight there.

In shared memory lies a block's whole share of the depth, copied once. Straight from memory, a
thread reads its runs beside its vectors of the large operand; other blocks' reads leave them in L2.
From the cache, it reads a run when it multiplies it: that takes no registers ahead, and L1 mostly
has it since an earlier block.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.thin.multiply import ThinMultiply
from tilewright.spaces.kernels.text import CUDA

SOURCES = ("shared", "memory", "cache")
"""Places from which threads read the small operand."""
_UNROLLED = 4  # copies in the body of a loop: more would delay the multiplications behind it


@dataclass(frozen=True)
class SmallOperand:
    """The reads of the small operand for ``multiply`` in ``steps`` steps, the share of a block."""

    multiply: ThinMultiply
    steps: int
    integer: str

    @property
    def is_shared(self) -> bool:
        """True if the operand lies in shared memory."""
        return self.multiply.tile.values["small_operand"] == "shared"

    @property
    def is_ahead(self) -> bool:
        """True if registers hold a step's elements from the time when the step is read."""
        return self.multiply.tile.values["small_operand"] == "memory"

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that it takes."""
        tile = self.multiply.tile
        return tile.thin.few * self._pitch if self.is_shared else 0

    @property
    def held(self) -> int:
        """Words in registers: of one run, or of all runs of a step."""
        runs = self.multiply.tile.runs if self.is_ahead else 1
        return self.multiply.small_held * runs

    def stage(self) -> list[str]:
        """Print how the block's share is copied to shared memory, zeros behind its end, and
        awaited."""
        if not self.is_shared:
            return []
        thin, vector = self._thin, self._vector
        vectors = self.steps * self.multiply.tile.depth // vector
        threads = self.multiply.tile.threads
        moves = repeat(thin.few, int(ceil_div(vectors, threads))) * spatial(1, threads)
        copies = moves.emit(
            THREAD,
            self._copy,
            extents=(None, vectors),
            prefix="x",
            unroll=_UNROLLED,
            integer=self.integer,
            language="cuda",
        )
        wait = (
            ["tw::cp_async_commit();", "tw::cp_async_wait<0>();"] if self._is_asynchronous else []
        )
        return [*copies, *wait, "tw::sync_block();"]

    def load(self, to: str) -> list[str]:
        """Print how the runs of the step at ``depth0`` are read, if they are read ahead."""
        if not self.is_ahead:
            return []
        tile, width = self.multiply.tile, self._piece

        def body(at: tuple[Index, ...]) -> list[str]:
            run, number, piece = at
            term = index("depth0") + tile.start(run) + piece * width
            return self._read(to, number, run, piece, term)

        pieces = repeat(tile.runs, self.multiply.rows, tile.run // width)
        return unrolled(pieces, 0, body, "x", None, self.integer)

    def start(self) -> list[str]:
        """Print the counter of terms, of shared memory or of the operand, if not read ahead."""
        if self.is_ahead:
            return []
        return ["int term0 = 0;"] if self.is_shared else [f"{self.integer} term0 = depth0;"]

    def fetch(self, to: str, run: Index) -> list[str]:
        """Print how the thread's run ``run`` of the step at ``term0`` is read, if not read
        ahead."""
        if self.is_ahead:
            return []
        return self._fetch_shared(to, run) if self.is_shared else self._fetch_cached(to, run)

    def _fetch_cached(self, to: str, run: Index) -> list[str]:
        tile, width = self.multiply.tile, self._piece

        def body(at: tuple[Index, ...]) -> list[str]:
            number, piece = at
            term = index("term0") + tile.start(run) + piece * width
            return self._read(to, number, Index(), piece, term)

        pieces = repeat(self.multiply.rows, tile.run // width)
        return unrolled(pieces, 0, body, "x", None, self.integer)

    def _read(self, to: str, number: Index, run: Index, piece: Index, term: Index) -> list[str]:
        """Print how a piece is read, as zeros behind the last term."""
        tile, packed, width = self.multiply.tile, 1 + self.multiply.small_pairs, self._piece
        word = self.multiply.small_word(number, run, piece * width)
        source = self._source(self.multiply.row(number), term)
        load = f"tw::load_global<{width // packed}>({to} + {word}, {source});"
        if tile.thin.terms % tile.depth == 0:
            return [load]
        zeros = [f"{to}[{(word + w).text}] = {{}};" for w in range(width // packed)]
        return CUDA.when(f"{term.text} < {tile.thin.terms}", [load], zeros)

    def _fetch_shared(self, to: str, run: Index) -> list[str]:
        tile, packed = self.multiply.tile, 1 + self.multiply.small_pairs
        bytes = self._thin.small.element.bytes
        width = min(tile.run, 16 // bytes)

        def body(at: tuple[Index, ...]) -> list[str]:
            number, piece = at
            term = index("term0") + tile.start(run) + piece * width
            address = self.multiply.row(number) * self._pitch + term * bytes
            word = self.multiply.small_word(number, Index(), piece * width)
            return [f"tw::load_shared<{width // packed}>({to} + {word}, shared + {address});"]

        return unrolled(repeat(self.multiply.rows, tile.run // width), 0, body, "x")

    # -- copies --------------------------------------------------------------------------------

    @property
    def _thin(self) -> Any:
        return self.multiply.tile.thin

    @property
    def _pitch(self) -> int:
        """Bytes between rows in shared memory."""
        return int(self.multiply.tile.sizes.small_pitch(self.steps * self.multiply.tile.depth))

    @property
    def _vector(self) -> int:
        """Terms that are copied at once."""
        return min(self._thin.small_vector, self.multiply.tile.depth)

    @property
    def _is_asynchronous(self) -> bool:
        """True if copies can be asynchronous."""
        return self._vector * self._thin.small.element.bytes in (4, 8, 16)

    @property
    def _piece(self) -> int:
        """Terms that come from memory at once."""
        return min(self._thin.small_vector, self.multiply.tile.run)

    def _source(self, row: Index, term: Index) -> str:
        thin = self._thin
        place = (
            f"{thin.small_name} + {(row * thin.row_stride + term * thin.small_depth_stride).text}"
        )
        return f"(const u32 *)({place})" if self.multiply.small_pairs else place

    def _copy(self, at: tuple[Index, ...]) -> list[str]:
        thin, vector = self._thin, self._vector
        bytes = thin.small.element.bytes
        row, term = at[0], at[1] * vector
        depth = (index("depth0") + term) * thin.small_depth_stride
        place = (thin.nearest_row(row, 0) * thin.row_stride + depth).text
        source = f"{thin.small_name} + {place}"
        to = f"shared + {row * self._pitch + term * bytes}"
        inside = f"depth0 + {term} < {thin.terms}"
        if self._is_asynchronous:
            size = vector * bytes
            return [f"tw::cp_async<{size}>({to}, {source}, {inside} ? {size} : 0);"]
        kind = C_TYPES[thin.small.dtype]
        return [
            f"{kind} piece[{vector}] = {{}};",
            f"if ({inside}) tw::load_global<{vector}>(piece, {source});",
            f"tw::store_shared<{vector}>({to}, piece);",
        ]
