"""The CUDA C++ of one pass: a block of points stays while tiles of the others pass.

Tiles are copied to a ring in shared memory, steps ahead. For each one, a warp multiplies scores
into registers and turns them to weights there, which are the left operand of the products that add
to its sums. Tiles of which no pair counts are not visited. As task mappings:

    spatial(products, tiles that stay) * repeat(tiles that pass)
        * spatial(warps) * repeat(fragments) * (the fragments of a warp)
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.chains.finish import store_pair
from tilewright.spaces.cuda.chains.scopes import RowScope
from tilewright.spaces.cuda.pairwise.block import COLUMN, ROWS, WIDE, Block
from tilewright.spaces.cuda.pairwise.pairs import Pairs
from tilewright.spaces.cuda.pairwise.passes import padded
from tilewright.spaces.cuda.pairwise.recomputing import Recomputing
from tilewright.spaces.cuda.pairwise.scalars import Scalars
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.scopes import Integer
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import AxisValue, Expression, Read


@dataclass(frozen=True)
class Visiting:
    """The kernel of ``block``."""

    block: Block

    def body(self) -> list[str]:
        """Print the kernel."""
        block, view = self.block, self.block.of.pairwise
        known = magnitudes(view.program)
        row = RowScope("g", self._stay_leaf, index="r", magnitudes=known)
        # written first: they declare what points need
        loop, stored = self._loop(Pairs(block, row)), self._stored(Recomputing(block, row))
        scalars = Scalars(view).declared() if view.scalars else ()
        return [
            "const int warp = (int)threadIdx.x / 32;",
            "const u32 shared = tw::shared_base();",
            *scalars,
            *self._place(),
            *self._points(row),
            *self._copies_of_points(),
            *self._begun(),
            *loop,
            *stored,
        ]

    def _place(self) -> list[str]:
        """Print the declarations of the product and the points of a block."""
        block, integer = self.block, self.block.batch.integer
        tiles, batches = int(block.sizes.stay_tiles(block.values)), block.of.pairwise.batches
        order = str(block.values["order"])
        tile, batch = f"(int)blockIdx.x % {tiles}", f"(int)blockIdx.x / {tiles}"
        if order.startswith("products"):
            tile, batch = f"(int)blockIdx.x / {batches}", f"(int)blockIdx.x % {batches}"
        if order.endswith("down"):
            tile = f"{tiles - 1} - {tile}"
        return [
            f"const int first_point = ({tile}) * {block.stay};",
            f"const {integer} batch = {batch};",
            *split("batch", block.of.pairwise.batch, block.batch.names, integer),
        ]

    def _points(self, row: RowScope) -> list[str]:
        """Print the declarations of a lane's points that stay, and of what they have."""
        block, integer = self.block, self.block.batch.integer
        count, parts = ROWS * block.fragments, block.of.staying
        local = {part.name: f"q{i}" for i, part in enumerate(parts)}
        body = [
            f"const {integer} point = tw_least({block.stay_number}, {block.of.stay_count - 1});",
            *split("point", parts, local, integer),
            *(f"p{i}[r] = q{i};" for i in range(len(parts))),
            *row.lines,
        ]
        return [
            *(f"{integer} p{i}[{count}];" for i in range(len(parts))),
            *(f"float {name}[{count}];" for name in row.declared),
            *CUDA.loop("r", count, body, unroll=True),
        ]

    def _stay_leaf(self, node: Expression) -> str | None:
        inner = node.node if isinstance(node, Integer) else node
        if not isinstance(inner, AxisValue | Read) or not self.block.of.is_staying(inner):
            return None
        if (n := self.block.of.scalar(inner)) is not None:
            return f"tw::load_global(scalar{n} + batch * {self.block.of.stay_count} + point)"
        return self.block.staying.leaf(node)

    def _copies_of_points(self) -> list[str]:
        copies = (
            self.block.stay_tile(m).copy(f"shared + {p}") for m, p in self.block.stay_places()
        )
        return [*(line for copy in copies for line in copy), "tw::cp_async_commit();"]

    def _begun(self) -> list[str]:
        count = self.block.fragments
        widths = (padded(each.width) // WIDE for each in self.block.of.sums)
        return [f"float sums{n}[{count}][{wide}][4] = {{}};" for n, wide in enumerate(widths)]

    # -- tiles -------------------------------------------------------------------------------------

    def _loop(self, pairs: Pairs) -> list[str]:
        """Print the loop over all tiles, some steps behind their copies."""
        block = self.block
        tile, stages, ahead = block.tile, block.stages, block.stages - 1
        stage = f"const u32 stage = shared + step % {stages} * {block.stage_bytes};"
        body = [
            f"tw::cp_async_wait<{ahead - 1}>();",
            "tw::sync_block();",
            *self._copies(f"tile + {ahead * tile}", f"(step + {ahead}) % {stages}"),
            *self._seen("tile", [stage, *self._whole(), *pairs.lines()]),
        ]
        begun = self._copies(f"begin + step * {tile}", "step")
        return [
            *self._range(),
            *CUDA.loop("step", ahead, begun, unroll=True),
            "int step = 0;",
            *CUDA.loop("tile", "end", body, first="begin", step=f"{tile}, step++"),
        ]

    def _range(self) -> list[str]:
        """Print the declarations of the first tile and of the end of the last one."""
        block = self.block
        if block.of.keys_stay or not block.of.pairwise.bounds:
            return [f"const int begin = 0, end = {block.of.pass_count};"]
        spans = block.spans.block_lines("first_point", block.stay, "first_key", "last_key")
        whole = block.spans.whole_lines("first_point", block.stay, "whole_first", "whole_last")
        first = f"(int)first_key / {block.tile} * {block.tile}"
        return [*spans, *whole, f"const int begin = {first}, end = (int)last_key;"]

    def _seen(self, tile: str, body: list[str]) -> list[str]:
        """Print the lines ``body`` for a tile of which some pair counts."""
        block = self.block
        if not block.of.keys_stay or not block.of.pairwise.bounds:
            return CUDA.block(*body)
        spans = block.spans.block_lines(tile, block.tile, "first_key", "last_key")
        test = f"first_key < first_point + {block.stay} && last_key > first_point"
        return CUDA.block(*spans, *CUDA.when(test, body))

    def _whole(self) -> list[str]:
        """Print the declaration of ``whole``: whether all pairs of a tile count."""
        block, view = self.block, self.block.of.pairwise
        tests = [f"tile + {block.tile} <= {block.of.pass_count}"]
        if view.is_bounded and not block.spans.can_be_whole:
            return ["const bool whole = false;"]
        if not view.bounds:
            return [f"const bool whole = {tests[0]};"]
        if not block.of.keys_stay:
            tests += ["tile >= whole_first", f"tile + {block.tile} <= whole_last"]
            return [f"const bool whole = {' && '.join(tests)};"]
        spans = block.spans.whole_lines("tile", block.tile, "whole_first", "whole_last")
        last = f"tw_least(first_point + {block.stay}, {block.of.stay_count})"
        tests += ["first_point >= whole_first", f"{last} <= whole_last"]
        return [*spans, f"const bool whole = {' && '.join(tests)};"]

    def _copies(self, tile: str, stage: str) -> list[str]:
        """Print how copies of a tile start, if there is one of which some pair counts."""
        place = f"const u32 to = shared + ({stage}) * {self.block.stage_bytes};"
        body = self._seen("next_tile", [place, *self._copied()])
        return [
            f"const int next_tile = {tile};",
            *CUDA.when("next_tile < end", body),
            "tw::cp_async_commit();",
        ]

    def _copied(self) -> list[str]:
        block = self.block
        tiles = ((block.pass_tile(m, "next_tile"), place) for m, place in block.pass_places())
        lines = [line for tile, place in tiles for line in tile.copy(f"to + {place}")]
        numbers = [line for n in range(len(block.of.numbers)) for line in self._copied_number(n)]
        if not numbers:
            return lines
        integer, threads = block.batch.integer, block.warps * 32
        body = [
            f"const {integer} point = tw_least(next_tile + at, {block.of.pass_count - 1});",
            *split("point", block.of.passing, block.pass_names, integer),
            *numbers,
        ]
        loop = CUDA.loop("at", block.tile, body, first="(int)threadIdx.x", step=threads)
        return [*lines, *loop]

    def _copied_number(self, n: int) -> list[str]:
        """Print how the number ``n`` of a point goes to shared memory."""
        block, read = self.block, self.block.of.numbers[n]
        to = f"to + {block.number_place(n)} + at * 4"
        if (scalar := block.of.scalar(read)) is not None:
            address = f"scalar{scalar} + batch * {block.of.pass_count} + point"
            return [f"tw::cp_async<4>({to}, {address});"]
        access = block.batch.knowing(block.pass_names)
        if block.of.pairwise.program.operand[read.name].dtype == "float32":
            return [f"tw::cp_async<4>({to}, {access.address(read)});"]
        return [f"tw::store_shared({to}, {access.element(read)});"]

    # -- outputs -----------------------------------------------------------------------------------

    def _stored(self, recomputing: Recomputing) -> list[str]:
        """Print how sums are stored."""
        block, lines = self.block, recomputing.lines()
        for n, each in enumerate(block.of.sums):
            kind, (factor, _) = C_TYPES[each.output.array.dtype], block.of.scaled_weights[n]
            total = block.sum(n) if factor == 1 else f"{block.sum(n)} * {factor!r}f"
            stores = [
                f"{kind} two[2];",
                *CUDA.loop("e", 2, f"two[e] = tw::from_float<{kind}>({total});", unroll=True),
                *store_pair(block.staying, each.output, each.width, COLUMN, "two"),
            ]
            lines += CUDA.loop("j", padded(each.width) // WIDE, stores, unroll=True)
        own = CUDA.when(f"{block.stay_number} < {block.of.stay_count}", lines)
        return CUDA.loop("r", ROWS * block.fragments, own, unroll=True)
