"""The end of a Hopper tile: a warpgroup's sums finished and written to the output.

Directly, each thread the elements it holds; or through shared memory, from where TMA stores whole
rows of 32 to 128 bytes and clips what sticks out. Into the same buffers TMA may have brought an
operand that lies as the output does. A warpgroup holds blocks of 64 x ``columns``
sums as wgmma leaves them (PTX ISA, "Register Fragments for wgmma"). Computed transposed, the
block's columns are rows of the output.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import cached_property
from itertools import product
from math import gcd

from spaces.algebra.index import Index, index
from spaces.algebra.layout import Layout, row_major, swizzled
from spaces.algebra.mapping import TaskMapping, repeat, spatial
from spaces.algebra.mapping_emit import indented
from spaces.cuda.abi import C_TYPES
from spaces.cuda.blocks.finish import Finish
from spaces.cuda.blocks.implicit import ImplicitProduct
from spaces.cuda.blocks.segments import segments_of
from spaces.cuda.blocks.unrolled import unrolled
from spaces.cuda.hopper.places import output_map
from spaces.cuda.hopper.tile import BLOCK, WIDEST_SWIZZLE, matrix_map, matrix_of
from spaces.cuda.hopper_pairs.product import twin_of
from spaces.cuda.tensor_map import TensorMapSpec
from spaces.workloads.contraction import Operand
from spaces.workloads.product import Product

CHUNK = 64
"""Most columns of a block that are finished at a time."""
MATRIX = 16
"""Rows and columns of what four 8 x 8 matrices of stmatrix cover."""


@dataclass(frozen=True)
class TileStore:
    """Stores ``blocks`` blocks of 64 x ``columns`` sums, ``sums[block][register]`` in each thread.
    Of two products, as many sums of the other one follow in each block.

    Lines read ``thread`` and ``group``, the numbers in the warpgroup and of it, and the position
    of the first sum in the output, ``row0`` and ``column0``. Staged, they also read ``staging``,
    the address of the warpgroup's ``buffers`` buffers, and ``turn``, the one to use next. If
    ``fetched`` is an operand, each chunk has a buffer, ``fetched`` is the address of a barrier and
    ``fetched_phase`` its phase.
    """

    finish: Finish
    swapped: bool
    blocks: int
    columns: int
    buffers: int
    fetched: Operand | None = None

    @property
    def is_staged(self) -> bool:
        """Whether the output passes through shared memory."""
        return self.buffers > 0

    @property
    def chunk(self) -> int:
        """Columns of a block that are finished at a time."""
        most = CHUNK if self.swapped else min(CHUNK, WIDEST_SWIZZLE // self._bytes)
        return gcd(self.columns, most)

    @property
    def buffer_bytes(self) -> int:
        """Bytes of a buffer."""
        return BLOCK * self.chunk * self._bytes

    @cached_property
    def tensor_map(self) -> TensorMapSpec:
        """A panel of a buffer, on its way to the output."""
        made, (rows, _) = self.finish.product, self._staged
        box = (self._panel, rows)
        if isinstance(made, ImplicitProduct):
            return output_map(made, box, self._panel * self._bytes)
        axes = (made.column, made.row)
        return matrix_map(made, made.output, axes, box, self._panel * self._bytes)

    @cached_property
    def fetched_map(self) -> TensorMapSpec:
        """The same panel of what is fetched."""
        made, (rows, _) = self.finish.product, self._staged
        assert isinstance(made, Product) and self.fetched  # noqa: PT018
        axes, box = (made.column, made.row), (self._panel, rows)
        return matrix_map(made, self.fetched, axes, box, self._panel * self._bytes)

    def start_lines(self, barriers: str, groups: int) -> list[str]:
        """Make the barriers at this address, one for each warpgroup."""
        if not self.fetched:
            return []
        return [f"for (int i = 0; i < {groups}; i++) tw::mbarrier_init({barriers} + 8 * i, 1);"]

    def fetch_lines(self) -> list[str]:
        """Ask for what lies beside the tile, once TMA has read what the buffers had."""
        if not self.fetched:
            return []
        chunks = product(range(self.blocks), range(self.columns // self.chunk))
        loads = [
            line
            for number, (m, n) in enumerate(chunks)
            for line in self._receive(Index() + m * BLOCK, Index() + n * self.chunk, number)
        ]
        return [
            "if (thread == 0) {",
            "  tw::tma_wait_read<0>();",
            f"  tw::mbarrier_arrive_expect(fetched, {self.buffers * self.buffer_bytes});",
            *(f"  {line}" for line in loads),
            "}",
            "tw::sync_warp();",
        ]

    def lines(self) -> list[str]:
        """Finish and write all blocks, a chunk at a time."""
        arrived = ["tw::mbarrier_wait(fetched, fetched_phase);", "fetched_phase ^= 1;"]

        def body(indices: tuple[Index, ...]) -> list[str]:
            m, n = indices[0] * BLOCK, indices[1] * self.chunk
            write = self._staged_chunk if self.is_staged else self._direct_chunk
            return [
                "{",
                # addresses and loads of a chunk are not worth registers before its turn
                f"  const int thread = tw::opaque((int)threadIdx.x % {2 * BLOCK});",
                *(f"  {line}" for line in write(m, n)),
                "}",
            ]

        chunks = unrolled(repeat(self.blocks, self.columns // self.chunk), 0, body, "c")
        return [*(arrived if self.fetched else []), *chunks]

    def last_lines(self) -> list[str]:
        """Before a block ends: shared memory must stay until TMA has read it."""
        return ["if (thread == 0) tw::tma_wait_read<0>();"] if self.is_staged else []

    # -- directly ------------------------------------------------------------------------------

    def _direct_chunk(self, m: Index, n: Index) -> list[str]:
        def body(indices: tuple[Index, ...]) -> list[str]:
            at = m + indices[0], n + indices[1] * 2
            sums, row, column = self._pair(*at), index("row0"), index("column0")
            if not self.swapped:
                return self.finish.store(row + at[0], column + at[1], sums, self._others(*at))
            return [
                line
                for e, total in enumerate(sums)
                for line in self.finish.store(row + at[1] + e, column + at[0], [total])
            ]

        return unrolled(spatial(4, 1) * _pairs_of_warp(self.chunk), "thread", body, "s")

    def _pair(self, m: Index, n: Index) -> list[str]:
        """The sums at (m, n) and (m, n + 1) of the warpgroup's blocks; n is even."""
        place = n // 8 * 4 + m // 8 % 2 * 2
        return [f"sums[{(m // BLOCK).text}][{(place + e).text}]" for e in range(2)]

    def _others(self, m: Index, n: Index) -> list[str]:
        """The sums of the twin at the same places, in the second half of a pair's columns."""
        return self._pair(m, n + self.columns) if twin_of(self.finish.product) else []

    # -- through shared memory -----------------------------------------------------------------

    @property
    def _bytes(self) -> int:
        return self.finish.output.element.bytes

    @property
    def _staged(self) -> tuple[int, int]:
        """Rows and columns of the output in a buffer."""
        return (self.chunk, BLOCK) if self.swapped else (BLOCK, self.chunk)

    @property
    def _panel(self) -> int:
        """Columns of the output that TMA stores at a time."""
        return min(self._staged[1], WIDEST_SWIZZLE // self._bytes)

    @cached_property
    def _layout(self) -> Layout:
        """Place in a buffer, in elements, of (row, column) of the output."""
        rows, columns = self._staged
        bits = (self._panel * self._bytes // 16).bit_length() - 1
        base = (16 // self._bytes).bit_length() - 1
        panel = swizzled(row_major(rows, self._panel), bits, base, 3)
        return row_major(1, columns // self._panel) * panel

    def _staged_chunk(self, m: Index, n: Index) -> list[str]:
        step = f"turn = turn == {self.buffers - 1} ? 0 : turn + 1;"
        sync = f"tw::sync_named(1 + group, {2 * BLOCK});"
        # the buffer is free once all later stores but those of the others have read it
        free = [f"if (thread == 0) tw::tma_wait_read<{self.buffers - 1}>();", sync]
        return [
            "const int lane = thread % 32;",
            f"const u32 buffer = staging + turn * {self.buffer_bytes};",
            *([] if self.fetched else free),
            *self._fill(m, n),
            # what threads wrote, TMA reads by the asynchronous proxy
            "tw::fence_async();",
            sync,
            *(self._leave(m, n) if self._segmented else self._commit(self._send(m, n))),
            step,
        ]

    def _commit(self, send: list[str]) -> list[str]:
        """One thread sends a buffer; each turn is a group, even if nothing is sent."""
        return [
            "if (thread == 0) {",
            *(f"  {line}" for line in send),
            "  tw::tma_commit();",
            "}",
        ]

    @property
    def _segmented(self) -> bool:
        return segments_of(self.finish.product) is not None

    def _leave(self, m: Index, n: Index) -> list[str]:
        """By TMA where all rows of the buffer are the segment's, and else row by row."""
        rows, _ = self._staged
        row = index("row0") + (n if self.swapped else m)
        return [
            f"const bool whole_rows = {(row + rows).text} <= end_row;",
            *self._commit(["if (whole_rows) {", *indented(self._send(m, n)), "}"]),
            "if (!whole_rows) {",
            *indented(self._store_rows(row, index("column0") + (m if self.swapped else n))),
            "}",
        ]

    def _store_rows(self, row: Index, column: Index) -> list[str]:
        """All threads store vectors of a buffer whose first element is at (row, column)."""
        rows, columns = self._staged
        width = self.finish.vector(16 // self._bytes)
        wide, kind = columns // width, C_TYPES[self.finish.output.dtype]

        def body(indices: tuple[Index, ...]) -> list[str]:
            r, c = indices[0], indices[1] * width
            at = f"output + {self.finish.product.written(row + r, column + c).text}"
            return [
                f"if ({(row + r).text} < end_row && {(column + c).text} < "
                f"{self.finish.product.columns}) {{",
                f"  {kind} value[{width}];",
                f"  tw::load_shared<{width}>(value, {self._address(r, c)});",
                f"  tw::store_global<{width}>({at}, value);",
                "}",
            ]

        turns = max(1, rows * wide // (2 * BLOCK))
        mapping = repeat(turns, 1) * spatial(2 * BLOCK // wide, wide)
        return unrolled(mapping, "thread", body, "w", (rows, wide))

    def _send(self, m: Index, n: Index) -> list[str]:
        rank, matrix = matrix_of(self.finish.product)
        return [
            f"tw::tma_store_{rank}(&output_map, {(index('buffer') + offset).text}, {at}{matrix});"
            for offset, at in self._panels(m, n)
        ]

    def _receive(self, m: Index, n: Index, number: int) -> list[str]:
        """Into buffer ``number`` what is fetched for a chunk."""
        rank, matrix = matrix_of(self.finish.product, self.fetched)
        to = index("staging") + number * self.buffer_bytes
        return [
            f"tw::tma_load_{rank}({(to + offset).text}, &fetched_map, fetched, {at}{matrix});"
            for offset, at in self._panels(m, n)
        ]

    def _panels(self, m: Index, n: Index) -> Iterator[tuple[int, str]]:
        """Of each panel of a chunk, its place in a buffer and C text of that in the output."""
        row, column = (n, m) if self.swapped else (m, n)
        rows, columns = self._staged
        for panel in range(columns // self._panel):
            first = index("column0") + column + panel * self._panel
            at = f"(int)({first.text}), (int)({(index('row0') + row).text})"
            yield panel * self._panel * rows * self._bytes, at

    def _fill(self, m: Index, n: Index) -> list[str]:
        if self._bytes == 2:
            return self._fill_matrices(m, n)

        def body(indices: tuple[Index, ...]) -> list[str]:
            within, column = indices[0], indices[1] * 2
            lines = [
                "float value[2];",
                *(self._beside(within, column) if self.fetched else []),
                *self._finished(m + within, n + column, 0),
            ]
            if self.swapped:
                lines += [
                    f"tw::store_shared({self._address(column + e, within)}, value[{e}]);"
                    for e in range(2)
                ]
            else:
                lines.append(f"tw::store_shared<2>({self._address(within, column)}, value);")
            return lines

        return unrolled(spatial(4, 1) * _pairs_of_warp(self.chunk), "thread", body, "f")

    def _beside(self, m: Index, n: Index) -> list[str]:
        """Declare ``beside``: what was fetched for the pair at (m, n) of a chunk."""
        if not self.swapped:
            return ["float beside[2];", f"tw::load_shared<2>(beside, {self._address(m, n)});"]
        loads = [f"tw::load_shared<float>({self._address(n + e, m)})" for e in range(2)]
        return [f"const float beside[2] = {{{', '.join(loads)}}};"]

    def _fill_matrices(self, m: Index, n: Index) -> list[str]:
        """Elements of 16 bits go by stmatrix: four 8 x 8 matrices of a warp at a time, the lanes
        giving the address of a row of a matrix each, transposed where n runs along rows."""
        kind = C_TYPES[self.finish.output.dtype]
        suffix = "_trans" if self.swapped else ""
        unit, matrix_rows = ((8, 1), spatial(1, 8)) if self.swapped else ((1, 8), spatial(8, 1))
        addresses = spatial(1, 2) * spatial(2, 1) * matrix_rows
        pairs = [f"tw::pack2<{kind}>(value[{i}], value[{i + 1}])" for i in range(0, 8, 2)]

        def body(indices: tuple[Index, ...]) -> list[str]:
            first = (indices[0] * MATRIX, indices[1] * MATRIX)
            places = iter(range(0, 8, 2))

            def pair(task: tuple[Index, ...]) -> list[str]:
                at = m + first[0] + task[0], n + first[1] + task[1] * 2
                return self._finished(*at, next(places))

            def place_of(task: tuple[Index, ...]) -> str:
                at = [f + t * u for f, t, u in zip(first, task, unit, strict=True)]
                return self._address(*(reversed(at) if self.swapped else at))

            def store(task: tuple[Index, ...]) -> list[str]:
                return [f"tw::stmatrix_x4{suffix}({place_of(task)}, packed);"]

            def load(task: tuple[Index, ...]) -> list[str]:
                return [f"tw::ldmatrix_x4{suffix}(held, {place_of(task)});"]

            fetched = [
                "u32 held[4];",
                *addresses.emit("lane", load, integer="int", language="cuda"),
                "float beside[8];",
                *(
                    f"tw::unpack2<{kind}>(held[{i}], beside[{2 * i}], beside[{2 * i + 1}]);"
                    for i in range(4)
                ),
            ]
            return [
                "float value[8];",
                *(fetched if self.fetched else []),
                *_pairs_of_warp(MATRIX).emit("lane", pair, unroll=True, language="cuda"),
                f"const u32 packed[4] = {{{', '.join(pairs)}}};",
                *addresses.emit("lane", store, integer="int", language="cuda"),
            ]

        parts = spatial(4, 1) * repeat(1, self.chunk // MATRIX)
        # a loop of one turn would leave the declarations without a scope
        return ["{", *unrolled(parts, "thread / 32", body, "p"), "}"]

    def _finished(self, m: Index, n: Index, place: int) -> list[str]:
        """Assign ``value[place]`` and the next: the finished elements at (m, n) and (m, n + 1)."""
        sums = self._pair(m, n)
        results = [f"value[{place + e}]" for e in range(2)]
        beside = [f"beside[{place + e}]" for e in range(2)] if self.fetched else []
        beside = beside or self._others(m, n)
        row, column = index("row0"), index("column0")
        if not self.swapped:
            return self.finish.finish(row + m, column + n, sums, results, beside)
        return [
            line
            for e in range(2)
            for line in self.finish.finish(
                row + n + e,
                column + m,
                *(values[e : e + 1] for values in (sums, results, beside)),
            )
        ]

    def _address(self, row: Index, column: Index) -> str:
        return (index("buffer") + self._layout.index([row, column]) * self._bytes).text


def _pairs_of_warp(columns: int) -> TaskMapping:
    """Lane to the pairs of neighbours it holds of 16 x ``columns`` sums, in order of registers."""
    return repeat(1, columns // 8) * repeat(2, 1) * spatial(8, 4)
