"""The CUDA C++ of a chained kernel by ``mma.sync``: scores, chain and sums of a block of rows.

A block has the rows of one product that its warps share, slices of sixteen for each warp. Tiles of
keys come to a ring in shared memory, some steps ahead. For each one, a warp multiplies scores into
registers, turns them to weights there, corrects its sums, and multiplies the weights into them:
what the first product leaves on a lane is what the second one takes from it. Tiles outside of all
rows' keys are not visited; those within test nothing. As task mappings:

    spatial(products, row tiles, slices of the width) * repeat(tiles of keys)
        * spatial(warps) * repeat(slices) * (the fragments of a warp)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.mapping_emit import indented
from spaces.cuda import scalar_math
from spaces.cuda.chained import access, chain
from spaces.cuda.chained.block import WIDE, Block
from spaces.cuda.chained.chain import ROWS
from spaces.cuda.chained.finish import Finish
from spaces.cuda.chained.multiplying import Multiplying
from spaces.cuda.chained.operands import Operands
from spaces.cuda.mma.fragments import FRAGMENT
from spaces.derivation.chained.text import split
from spaces.kernel import Argument, Call, Kernel, Launch, Source


@dataclass(frozen=True)
class ChainedCode:
    """The kernel called ``entry`` of a block."""

    block: Block
    entry: str

    @cached_property
    def _operands(self) -> Operands:
        return Operands(self.block)

    def kernel(self, arguments: tuple[Argument, ...], functions: frozenset[str]) -> Kernel:
        """The kernel as a whole, of a program that calls ``functions``."""
        launch = Launch(
            (int(self.block.sizes.blocks(self.block.values)), 1, 1),
            (self.block.threads, 1, 1),
            shared_bytes=int(self.block.sizes.shared_bytes(self.block.values)),
        )
        called = {*functions, "floor"}
        prelude = scalar_math.prelude(called) + chain.HELPERS + access.HELPERS
        merging = self.block.merging
        call = Call(
            self.entry,
            arguments,
            merging.workspace_bytes,
            merging.zeroed_bytes,
            (launch,),
        )
        return Kernel(Source("cuda", prelude, self.source), call)

    # -- text --------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The entry."""
        bounds = f"__launch_bounds__({self.block.threads}, {self.block.number('residency')})"
        loop, finish = self._loop(), self._finish()  # these say what is known of rows before
        body = [
            "const u32 shared = tw::shared_base();",
            "const int lane = threadIdx.x % 32, warp = threadIdx.x / 32;",
            *self._place(),
            *self._begin_rows(),
            *self.block.spans.block_lines("first_row", self.block.rows, "first_key", "last_key"),
            *self._warp_spans(),
            *self._operands.load_rows(),
            *self._declare(),
            *loop,
            *finish,
        ]
        parameters = self.block.batch.parameters()
        parameters += ", u8 *__restrict__ workspace" if self.block.split > 1 else ""
        lines = [
            f'extern "C" __global__ void {bounds} {self.entry}({parameters}) {{',
            f"  constexpr int TW_KEYS = {self.block.keys};",
            *indented(body),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _place(self) -> list[str]:
        """Which product, rows and columns a block has."""
        sizes, values = self.block.sizes, self.block.values
        tiles, slices = int(sizes.row_tiles(values)), int(sizes.slices(values))
        order = str(values["order"])
        batches, integer = self.block.chained.batches, self.block.integer
        if order.startswith("rows"):
            tile, batch = f"block % {tiles}", f"block / {tiles}"
        else:
            tile, batch = f"block / {batches}", f"block % {batches}"
        if order.endswith("down"):
            tile = f"{tiles - 1} - {tile}"
        row = f"first_row + warp * {self.block.slices * FRAGMENT}"
        number = "(int)blockIdx.x"
        parts = []
        if self.block.split > 1:
            parts = [f"const int part = {number} % {self.block.split};"]
            parts.append(f"const int tile_number = {number} / {self.block.split};")
            number = "tile_number"
        return [
            *parts,
            f"const int block = {number} / {slices};",
            f"const int block_column = {number} % {slices} * {self.block.columns};",
            f"const int first_row = ({tile}) * {self.block.rows}, warp_row = {row};",
            f"const {integer} batch = {batch};",
            *split("batch", self.block.chained.batch, self.block.batch.names, integer),
        ]

    def _begin_rows(self) -> list[str]:
        """What a lane knows of each of its rows before the first tile."""
        count, chained, integer = ROWS * self.block.slices, self.block.chained, self.block.integer
        local = {part.name: f"q{i}" for i, part in enumerate(chained.rows)}
        last = chained.row_count - 1
        body = [
            "const int own = warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4;",
            f"const {integer} row = tw_least(own, {last});",
            *split("row", chained.rows, local, integer),
            *(f"p{i}[r] = q{i};" for i in range(len(local))),
            f"{integer} begin, end;",
            *self.block.row.forms.bounds(chained.bounds, chained.key, "begin", "end"),
            "low[r] = (int)begin;",
            "high[r] = (int)tw_most(end, 0);",
            *self.block.chain.of_rows(),
        ]
        return [
            *(f"{integer} p{i}[{count}];" for i in range(len(local))),
            f"int low[{count}], high[{count}];",
            *self.block.chain.declared(),
            "#pragma unroll",
            f"for (int r = 0; r < {count}; r++) {{",
            *indented(body),
            "}",
        ]

    def _warp_spans(self) -> list[str]:
        rows = self.block.slices * FRAGMENT
        return [
            *self.block.spans.block_lines("warp_row", rows, "own_first", "own_last"),
            *self.block.spans.whole_lines("warp_row", rows, "whole_first", "whole_last"),
        ]

    def _declare(self) -> list[str]:
        pairs = self.block.columns // WIDE
        sums = (f"sums{i}" for i in range(len(self.block.chained.weighings)))
        return [f"float {name}[{self.block.slices}][{pairs}][4] = {{}};" for name in sums]

    def _loop(self) -> list[str]:
        """All tiles of keys, some steps behind their copies."""
        stages, size = self.block.number("stages"), self.block.stage_bytes
        ahead = stages - 1
        return [
            f"int begin_key = (int)first_key / {self.block.keys} * {self.block.keys};",
            *self._own_part(),
            "#pragma unroll",
            f"for (int step = 0; step < {ahead}; step++) {{",
            f"  const int next_tile = begin_key + step * {self.block.keys};",
            "  if (next_tile < last_key) {",
            f"    const u32 to = shared + step * {size};",
            *indented(indented(self._operands.load_keys("next_tile", "to"))),
            "  }",
            "  tw::cp_async_commit();",
            "}",
            "int step = 0;",
            f"for (int tile = begin_key; tile < last_key; tile += {self.block.keys}, step++) {{",
            f"  tw::cp_async_wait<{ahead - 1}>();",
            "  tw::sync_block();",
            f"  const int next_tile = tile + {ahead * self.block.keys};",
            "  if (next_tile < last_key) {",
            f"    const u32 to = shared + (step + {ahead}) % {stages} * {size};",
            *indented(indented(self._operands.load_keys("next_tile", "to"))),
            "  }",
            "  tw::cp_async_commit();",
            f"  if (tile < own_last && tile + {self.block.keys} > own_first) {{",
            f"    const u32 stage = shared + step % {stages} * {size};",
            *indented(indented(Multiplying(self.block, self._operands).lines())),
            "  }",
            "}",
        ]

    def _own_part(self) -> list[str]:
        """An equal share of the tiles, if keys are split."""
        if self.block.split == 1:
            return []
        keys = self.block.keys
        return [
            f"const int all = ((int)last_key - begin_key + {keys - 1}) / {keys};",
            f"const int share = (all + {self.block.split - 1}) / {self.block.split} * {keys};",
            "begin_key += part * share;",
            "last_key = tw_least(last_key, begin_key + share);",
        ]

    def _finish(self) -> list[str]:
        """Join what lanes have, merge parts, and store the outputs of each row."""
        own = f"warp_row + r / 2 * 16 + r % 2 * 8 + lane / 4 < {self.block.chained.row_count}"
        sums = [
            f"sums{n}[r / 2][j][r % 2 * 2 + e]" for n in range(len(self.block.chained.weighings))
        ]
        finish = Finish(self.block.chain, self.block.row, sums, self.block.columns // WIDE)
        stored = finish.lines()
        return [
            "const int column0 = block_column + lane % 4 * 2;",
            "const bool is_first = lane % 4 == 0 && block_column == 0;",
            *self._each_row([*self.block.chain.joined_rows(), *self._catch_up()]),
            *self.block.merging.leave(own),
            *["if (!is_last) return;"] * (self.block.split > 1),
            *self.block.merging.collect(own),
            *self._each_row([f"if ({own}) {{", *indented(stored), "}"]),
        ]

    def _each_row(self, body: Sequence[str]) -> list[str]:
        head = f"for (int r = 0; r < {ROWS * self.block.slices}; r++) {{"
        return ["#pragma unroll", head, *indented(body), "}"]

    def _catch_up(self) -> list[str]:
        """Bring the sums of row ``r`` from the base of its totals to its results."""
        lines = []
        for n, last in enumerate(self.block.chain.last_factors):
            if last:
                lines += [
                    "#pragma unroll",
                    f"for (int j = 0; j < {self.block.columns // WIDE}; j++) {{",
                    f"  sums{n}[r / 2][j][r % 2 * 2] *= {last};",
                    f"  sums{n}[r / 2][j][r % 2 * 2 + 1] *= {last};",
                    "}",
                ]
        return lines
