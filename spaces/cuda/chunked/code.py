"""A chunked kernel by ``mma.sync``: a block walks along all chunks of one product.

Tiles are copied to a ring in shared memory, chunks ahead. A block has columns of the sums, and its
warps the state for these in registers: no state is ever in memory. As task mappings:

    spatial(products, tiles of columns) * repeat(chunks) * spatial(warps) * repeat(fragments)
        * (the fragments of sixteen columns of a warp)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cuda import scalar_math, whole_numbers, wide
from tilewright.spaces.cuda.abi import C_TYPES, function
from tilewright.spaces.cuda.chains import lanes
from tilewright.spaces.cuda.chains.finish import store_pair
from tilewright.spaces.cuda.chains.scopes import ThreadScope
from tilewright.spaces.cuda.chunked import numbers, products
from tilewright.spaces.cuda.chunked.block import POINT, WIDE, Block
from tilewright.spaces.cuda.chunked.numbers import Numbers
from tilewright.spaces.cuda.chunked.products import PLACE, POSITION, Products
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.algebra import product
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class ChunkedCode:
    """The kernel named ``entry`` of ``block``."""

    block: Block
    entry: str

    def kernel(self, arguments: tuple[Argument, ...], functions: frozenset[str]) -> Kernel:
        """Return the kernel with its launch, for a program that calls ``functions``."""
        block, view = self.block, self.block.view
        prelude = scalar_math.prelude({*functions, "floor"}) + lanes.helpers(has_places=False)
        prelude += whole_numbers.HELPERS + numbers.HELPERS + products.HELPERS
        prelude += wide.helpers(magnitudes(view.program), view.expressions)
        launch = Launch(
            (int(block.sizes.blocks(block.values)), 1, 1),
            (block.warps * WARP, 1, 1),
            shared_bytes=int(block.sizes.shared_bytes(block.values)),
        )
        call = Call(self.entry, arguments, 0, 0, (launch,))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The CUDA C++ of the entry."""
        bounds = f"{self.block.warps * WARP}, {int(self.block.values['blocks_per_sm'])}"
        lines = function(self.entry, bounds, self.block.batch.parameters(), self._body())
        return "\n".join(lines) + "\n"

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers(self.block)

    def _body(self) -> list[str]:
        block, found = self.block, Products(self.block, self._numbers)
        ahead = block.stages - 1
        work = [
            f"tw::cp_async_wait<{ahead - 1}>();",
            "tw::sync_block();",
            *self._copies(f"chunk + {ahead}"),
            f"const u32 stage = shared + chunk % {block.stages} * {block.stage_bytes};",
            *([f"const u32 turn = {self._numbers.turn('chunk')};"] * bool(block.sizes.numbers)),
            *found.scores(),
            *self._if_more(self._numbers.lines("chunk + 1")),
            *found.read(),
            "tw::sync_block();",
            *found.summed(),
            *self._if_more(found.added()),
            *self._stored(),
        ]
        return [
            f"const int lane = (int)threadIdx.x % {WARP}, warp = (int)threadIdx.x / {WARP};",
            "const u32 shared = tw::shared_base();",
            f"const u32 weighed = shared + {block.score_place};",
            *self._place(),
            *found.declared(),
            *self._numbers.begun(),
            *CUDA.loop("chunk", ahead, self._copies("chunk"), unroll=True),
            *CUDA.block(*self._numbers.lines("0")),
            *CUDA.loop("chunk", block.chunks, work, unroll=1),
        ]

    def _place(self) -> list[str]:
        """Print the declarations of the product and the columns of a block."""
        block, integer = self.block, self.block.batch.integer
        tiles, columns = (
            int(count(block.values)) for count in (block.sizes.column_tiles, block.sizes.columns)
        )
        return [
            f"const int first_column = (int)blockIdx.x % {tiles} * {columns};",
            f"const {integer} batch = (int)blockIdx.x / {tiles};",
            *split("batch", block.view.batch, block.batch.names, integer),
        ]

    def _copies(self, chunk: str) -> list[str]:
        """Print how copies of a chunk start, if there is one."""
        block = self.block
        stage = f"const u32 to = shared + next % {block.stages} * {block.stage_bytes};"
        tiles = zip(block.tiles("first_point"), block.places, strict=True)
        body = [stage, f"const int first_point = next * {block.chunk};"]
        body += [line for tile, place in tiles for line in tile.copy(f"to + {place}")]
        return CUDA.block(
            f"const int next = {chunk};",
            *CUDA.when(f"next < {block.chunks}", body),
            "tw::cp_async_commit();",
        )

    def _if_more(self, lines: list[str]) -> list[str]:
        """Print what is done for the chunks behind one, if there are some."""
        return CUDA.when(f"chunk + 1 < {self.block.chunks}", lines) if lines else []

    # -- outputs -----------------------------------------------------------------------------------

    def _stored(self) -> list[str]:
        """Print how the sums of a chunk become outputs."""
        block, integer = self.block, self.block.batch.integer
        number = f"chunk * {block.chunk} + i * {FRAGMENT} + {POSITION.format('h')}"
        columns = CUDA.loop("j", 2 * block.fragments, self._pair(), unroll=True)
        extent = block.view.key.extent
        inside = columns
        if extent % block.chunk:
            inside = CUDA.when(f"{POINT} < {extent}", columns)
        row = [f"const {integer} {POINT} = {number};", *inside]
        halves = CUDA.loop("h", 2, row, unroll=True)
        return CUDA.loop("i", block.rows, halves, unroll=True)

    def _pair(self) -> list[str]:
        """Print how two neighbours of a row are stored."""
        block, view, lines = self.block, self.block.view, list[str]()
        known = block.at.knowing({view.width.name: "column"})

        def leaf(node: Expression) -> str | None:
            return "total" if node == view.total else known.leaf(node)

        scope = ThreadScope("y", leaf, lines, magnitudes=magnitudes(view.program))
        scaled = scope.text(product((view.total, view.scale)))
        scope.names[view.total] = scaled
        stores, declared = list[str](), list[str]()
        first = f"first_column + warp * {block.fragments * FRAGMENT} + j * {WIDE} + {PLACE}"
        for n, output in enumerate(view.outputs):
            kind = C_TYPES[output.array.dtype]
            value = scope.text(output.value)
            lines.append(f"pair{n}[e] = tw::from_float<{kind}>({value});")
            declared.append(f"{kind} pair{n}[2];")
            stores += store_pair(block.at, output, view.width, "first", f"pair{n}")
        total = "sums[i][j][h * 2 + e]"
        if view.carried.exclusive:  # the first position has no terms, whatever reads them
            total = f"{POINT} > 0 ? {total} : 0.0f"
        body = [
            f"const int column = tw_least(first + e, {view.width.extent - 1});",
            f"const float total = {total};",
            *lines,
        ]
        return [
            f"const int first = {first};",
            *declared,
            *CUDA.loop("e", 2, body, unroll=True),
            *stores,
        ]
