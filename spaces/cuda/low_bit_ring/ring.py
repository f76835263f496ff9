"""The ring of a team of warps: stages of codes and activations in shared memory, and their copies.

A stage of codes is as many tiles as a block has along the columns, which are neighbours in memory,
for each tile of its depth. Activations of 16 bits lie in rows of 128 bytes, and those of 8 bits in
rows of 64, permuted as TMA does it, so that ``ldmatrix`` meets all banks. A stage is filled again
once all warps of the team have multiplied it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.cuda.low_bit.decoding import Lines
from tilewright.spaces.cuda.low_bit.elements import Elements
from tilewright.spaces.cuda.low_bit.sizes import COLUMNS
from tilewright.spaces.cuda.low_bit_ring.sizes import BARRIER, RingSizes
from tilewright.spaces.cuda.mma.fragments import swizzled_tile
from tilewright.spaces.cuda.target import VECTOR_BYTES, WARP
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Read
from tilewright.spaces.low_bit.order import DEPTH, tile_bytes

HALF = DEPTH // 2
"""Depth that one ``ldmatrix`` loads of eight rows."""


@dataclass(frozen=True)
class Ring:
    """The rings of a block; ``elements`` has pointers to arrays, ``bulk`` says how copies are made.

    C variables are ``team``, ``own`` (the warp in its team), ``lane``, ``turns`` (the stages that
    the team multiplies), ``first``, ``last`` and ``begun`` along the depth, ``tile`` and ``there``,
    the tiles along the columns that there are.
    """

    sizes: RingSizes
    elements: Elements
    bulk: bool

    # -- numbers -----------------------------------------------------------------------------------

    @property
    def _stages(self) -> int:
        return int(self.sizes.values["stages"])

    @property
    def _teams(self) -> int:
        return int(self.sizes.values["warp_depth"])

    @property
    def _warps(self) -> int:
        """Warps of a team."""
        return int(self.sizes.values["warp_columns"])

    @property
    def _deep(self) -> int:
        """Tiles of a stage along the depth."""
        return int(self.sizes.values["stage_depth"])

    @property
    def _tile(self) -> int:
        """Bytes of a tile of codes."""
        return tile_bytes(self.sizes.pairs.decoding.bits)

    @property
    def piece(self) -> int:
        """Activations that are copied, or loaded by a lane for ``ldmatrix``, at once."""
        return VECTOR_BYTES // self.sizes.activation

    @property
    def line(self) -> int:
        """Bytes of a row of activations."""
        return DEPTH * self.sizes.activation

    @property
    def _activation(self) -> str:
        activation = self.sizes.product.activation
        assert isinstance(activation, Read)
        return activation.name

    @property
    def tensor_maps(self) -> dict[str, TensorMapSpec]:
        """The tensor map of activations by its parameter, if bulk copies bring them."""
        if not self.bulk:
            return {}
        product, kind = self.sizes.product, self.sizes.pairs.kind
        dims, box = (product.terms, product.row_count), (DEPTH, int(self.sizes.rows))
        pitch = product.terms * self.sizes.activation
        return {"map": TensorMapSpec(self._activation, kind, dims, (pitch,), box, self.line)}

    # -- turns -------------------------------------------------------------------------------------

    def start(self) -> Lines:
        """Declare the ring of a team, and initialise its barriers."""
        sizes, stages = self.sizes, self._stages
        lines = [
            f"const u32 activations = shared + team * {stages * int(sizes.activation_stage)};",
            f"const u32 ring = shared + {int(sizes.codes_at)} + "
            f"team * {stages * int(sizes.code_stage)};",
            "int slot = 0;",
        ]
        if not self.bulk:
            return lines
        barriers = [f"tw::mbarrier_init(full + {BARRIER} * i, 1);"]
        empty = f"const u32 empty = full + {self._teams * BARRIER * stages};"
        if self._warps > 1:
            barriers.append(f"tw::mbarrier_init(empty + {BARRIER} * i, {self._warps});")
        begun = [
            "tw::tma_prefetch(&map);",
            *CUDA.loop("i", stages, barriers),
            "tw::fence_barrier_init();",
        ]
        return [
            *lines,
            f"const u32 full = shared + {int(sizes.barriers_at)} + team * {BARRIER * stages};",
            *([empty] if self._warps > 1 else []),
            "u32 parity = 0;",
            "const u64 once = tw::evict_first();",
            *CUDA.when("own == 0 && lane == 0", begun),
            *(self._meet() if self._warps > 1 else ["tw::sync_warp();"]),
        ]

    def fill(self) -> Lines:
        """Fill all stages but one."""
        stages = self._stages
        slot = f"(slot + i) % {stages}"
        copy = CUDA.when("i < turns", self._copy("i", slot))
        if not self.bulk:
            return CUDA.loop("i", stages - 1, [*copy, "tw::cp_async_commit();"], kind="u32")
        rest = CUDA.loop("i", stages, CUDA.when("i < turns", self._rest(slot)), kind="u32")
        tiles = int(self.sizes.block_tiles)
        return [
            *CUDA.when(f"own == 0 && lane == 0 && there < {tiles}", rest),
            *CUDA.loop("i", stages - 1, copy, kind="u32"),
        ]

    def _rest(self, slot: str) -> Lines:
        """Fill what a block with fewer tiles lacks with any codes, for sums that nobody reads."""
        tiles, size = int(self.sizes.block_tiles), self._tile
        to = f"ring + to * {int(self.sizes.code_stage)} + (d * {tiles} + there) * {size}"
        copy = f"tw::bulk_load({to}, q, ({tiles} - there) * {size}, full + {BARRIER} * to);"
        return [
            f"const int to = {slot};",
            f"tw::mbarrier_expect(full + {BARRIER} * to, ({tiles} - there) * {size * self._deep});",
            *CUDA.loop("d", self._deep, [copy]),
        ]

    def wait(self) -> Lines:
        """Wait for the next stage, and fill the one that was multiplied last, once all warps of the
        team are done with it."""
        ahead = f"(n + {self._stages - 1})"
        to = f"(slot == 0 ? {self._stages - 1} : slot - 1)"
        emptied = f"tw::mbarrier_wait(empty + {BARRIER} * to, slot == 0 ? parity ^ 1 : parity);"
        waits = [emptied] if self.bulk and self._warps > 1 else []
        copy = CUDA.when(f"{ahead} < turns", self._copy(ahead, to, waits))
        sizes = self.sizes
        places = [
            f"const u32 x = activations + slot * {int(sizes.activation_stage)};",
            f"const u32 codes = ring + slot * {int(sizes.code_stage)};",
        ]
        if self.bulk:
            wait = f"tw::mbarrier_wait(full + {BARRIER} * slot, parity);"
            return [wait, *(self._meet() if self._warps == 1 else []), *copy, *places]
        wait = f"tw::cp_async_wait<{self._stages - 2}>();"
        return [wait, *self._meet(), *copy, "tw::cp_async_commit();", *places]

    def turn(self) -> Lines:
        """Go on to the next stage."""
        back = ["slot = 0;", *(["parity ^= 1;"] if self.bulk else [])]
        done = [
            "tw::sync_warp();",
            f"if (lane == 0) tw::mbarrier_arrive(empty + {BARRIER} * slot);",
        ]
        return [
            *(done if self.bulk and self._warps > 1 else []),
            *CUDA.when(f"++slot == {self._stages}", back),
        ]

    def _meet(self) -> Lines:
        """Let the warps of the team meet."""
        if self._warps == 1:
            return ["tw::sync_warp();"]
        if self._teams == 1:
            return ["tw::sync_block();"]
        return [f"tw::sync_named(1 + team, {WARP * self._warps});"]

    def at(self, turn: str) -> Lines:
        """Declare ``at``, the place along the depth of a team's stage: blocks begin at different
        ones."""
        n, run = index(turn), int(self.sizes.run)
        place = (n // run * self._teams + index("team")) * run + n % run
        return [
            f"const int on = begun + {place.text};",
            "const int at = on < last ? on : on - last + first;",
        ]

    # -- copies ------------------------------------------------------------------------------------

    def _copy(self, turn: str, slot: str, waits: Sequence[str] = ()) -> Lines:
        """Begin to copy the stage of a turn into a slot, after the lines ``waits``."""
        begin = [*self.at(turn), f"const int to = {slot};", *waits]
        if self.bulk:
            return CUDA.when("own == 0 && lane == 0", [*begin, *self._bulk()])
        return [*begin, *self._by_lanes()]

    def _source(self, tile: str) -> str:
        """C expression: the codes of a tile along the depth of the stage ``at``."""
        return f"q + ((i64)(at * {self._deep} + {tile}) * {self.sizes.tiles} + tile) * {self._tile}"

    def _bulk(self) -> Lines:
        sizes, size = self.sizes, self._tile
        stage, panel = int(sizes.activation_stage), int(sizes.rows) * self.line
        codes = f"ring + to * {int(sizes.code_stage)} + d * {int(sizes.block_tiles) * size}"
        body = [
            f"tw::bulk_load({codes}, {self._source('d')}, there * {size}, barrier, once);",
            f"tw::tma_load_2d(activations + to * {stage} + d * {panel}, &map, barrier, "
            f"(at * {self._deep} + d) * {DEPTH}, (int)row0);",
        ]
        return [
            f"const u32 barrier = full + {BARRIER} * to;",
            f"tw::mbarrier_arrive_expect(barrier, {stage} + {self._deep * size} * there);",
            *CUDA.loop("d", self._deep, body, unroll=True),
        ]

    def _by_lanes(self) -> Lines:
        """Copy 16 bytes at a time, by all lanes of the team; what a block with fewer tiles lacks is
        any codes, for sums that nobody reads."""
        sizes, product = self.sizes, self.sizes.product
        rows, line = int(sizes.rows), self._tile * int(sizes.block_tiles) // VECTOR_BYTES
        lanes = WARP * self._warps
        first = f"own * {WARP} + lane"
        n = index("n", self._deep * line)
        codes = [
            f"const int piece = {(n % line).text};",
            f"const u8 *const from = piece < there * {self._tile // VECTOR_BYTES} ? "
            f"{self._source((n // line).text)} + piece * {VECTOR_BYTES} : q;",
            f"tw::cp_async<{VECTOR_BYTES}>(ring + to * {int(sizes.code_stage)} + "
            f"n * {VECTOR_BYTES}, from);",
        ]
        pieces = DEPTH // self.piece
        n = index("n", self._deep * rows * pieces)
        tile, row, piece = n // (rows * pieces), n // pieces % rows, n % pieces
        place = tile * rows * self.line + self.place_of(row, piece)
        term = tile * DEPTH + piece * self.piece
        there = f"row < {product.row_count} && depth < {product.terms}"
        source = self.elements.call("source", "row") if product.chosen_row else "row"
        activations = [
            f"const i64 row = row0 + {row.text};",
            f"const i64 depth = (i64)at * {int(sizes.depth)} + {term.text};",
            f"const bool there = {there};",
            f"tw::cp_async<{VECTOR_BYTES}>(activations + to * {int(sizes.activation_stage)} + "
            f"{place.text}, {self.elements.names[self._activation]} + "
            f"(there ? {source} * {product.terms} + depth : 0), there ? {VECTOR_BYTES} : 0);",
        ]
        return [
            *CUDA.loop("n", self._deep * line, codes, first=first, step=lanes),
            *CUDA.loop("n", self._deep * rows * pieces, activations, first=first, step=lanes),
        ]

    def place_of(self, row: Index | str, piece: Index | str) -> Index:
        """Return the byte of a piece of a row of activations, within a tile's depth."""
        row, piece = index(row), index(piece)
        layout = swizzled_tile(int(self.sizes.rows), DEPTH, self.sizes.activation)
        return layout.index([row, piece * self.piece]) * self.sizes.activation

    # -- fragments ---------------------------------------------------------------------------------

    def fragments(self, half: int) -> Lines:
        """Load the right operands of two steps of the depth, for all rows."""
        rows = int(self.sizes.rows)
        lane = index("lane", WARP)
        r = index("r", rows // COLUMNS)
        tile, within = divmod(half, DEPTH // HALF)
        row, piece = r * COLUMNS + lane % COLUMNS, lane // COLUMNS + within * (HALF // self.piece)
        place = self.place_of(row, piece) + tile * rows * self.line
        body = [f"tw::ldmatrix_x4(b{half}[r], x + {place.text});"]
        return [
            f"u32 b{half}[{rows // COLUMNS}][4];",
            *CUDA.loop("r", rows // COLUMNS, body, unroll=True),
        ]
