"""A chunked kernel by ``mma.sync``: a block walks along all chunks of one product.

Tiles are copied to a ring in shared memory, chunks ahead. A block has columns of the sums, and its
warps the state for these in registers: no state is ever in memory. As task mappings:

    spatial(segments, products, tiles of columns) * repeat(chunks) * spatial(warps)
        * repeat(fragments) * (the fragments of sixteen columns of a warp)
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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
from tilewright.spaces.cuda.chunked.segments import Segments
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
        size = int(block.sizes.workspace_bytes(block.values))
        call = Call(self.entry, arguments, size, 0, tuple(self._launches()))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def _first_entry(self) -> str:
        return f"{self.entry}_states"

    def _launches(self) -> Iterator[Launch]:
        """Yield the launches: for the states of segments, if there are several, and for outputs."""
        segments = self.block.segments
        if segments > 1:
            yield self._launch(segments - 1, self._first_entry)
        yield self._launch(segments, self.entry)

    def _launch(self, segments: int, entry: str) -> Launch:
        block = self.block
        return Launch(
            (int(block.sizes.blocks(block.values)) * segments, 1, 1),
            (block.warps * WARP, 1, 1),
            shared_bytes=int(block.sizes.shared_bytes(block.values)),
            entry=entry,
        )

    @property
    def source(self) -> str:
        """The CUDA C++ of all functions."""
        lines = []
        if self.block.segments > 1:
            lines += self._function(self._first_entry, self._states())
        return "\n".join([*lines, *self._function(self.entry, self._outputs())]) + "\n"

    def _function(self, name: str, body: Sequence[str]) -> list[str]:
        bounds = f"{self.block.warps * WARP}, {int(self.block.values['blocks_per_sm'])}"
        parameters = self.block.batch.parameters()
        parameters += ", u8 *__restrict__ workspace" * (self.block.segments > 1)
        return function(name, bounds, parameters, body)

    @cached_property
    def _numbers(self) -> Numbers:
        return Numbers(self.block)

    @cached_property
    def _products(self) -> Products:
        return Products(self.block, self._numbers)

    @cached_property
    def _segments(self) -> Segments:
        return Segments(self.block, self._numbers)

    def _states(self) -> list[str]:
        """Print the kernel that leaves the states of segments."""
        work = [*self._if_more(self._numbers.lines("chunk + 1")), *self._products.added()]
        return [*self._begun(), *self._walk(work, reads=False), *self._segments.left()]

    def _outputs(self) -> list[str]:
        """Print the kernel that computes all outputs."""
        found = self._products
        work = [
            *found.scores(),
            *self._if_more(self._numbers.lines("chunk + 1")),
            *found.read(),
            "tw::sync_block();",
            *found.summed(),
            *self._if_more(found.added()),
            *self._stored(),
        ]
        weighed = f"const u32 weighed = shared + {self.block.score_place};"
        joined = self._segments.joined()
        return [*self._begun(), weighed, *joined, *self._walk(work, reads=True)]

    def _begun(self) -> list[str]:
        """Print the declarations of a block."""
        return [
            f"const int lane = (int)threadIdx.x % {WARP}, warp = (int)threadIdx.x / {WARP};",
            "const u32 shared = tw::shared_base();",
            *self._segments.declared(),
            *self._place(),
            *self._products.declared(),
            *self._numbers.begun(),
        ]

    def _walk(self, work: Sequence[str], reads: bool) -> list[str]:
        """Print the loop over the chunks of a block, some steps behind their copies; left factors
        are copied if the work ``reads`` a state."""
        block, ahead = self.block, self.block.stages - 1
        body = [
            f"tw::cp_async_wait<{ahead - 1}>();",
            "tw::sync_block();",
            *self._copies(f"chunk + {ahead}", reads),
            f"const u32 stage = shared + chunk % {block.stages} * {block.stage_bytes};",
            *([f"const u32 turn = {self._numbers.turn('chunk')};"] * bool(block.sizes.numbers)),
            *work,
        ]
        return [
            *CUDA.loop("step", ahead, self._copies("first + step", reads), unroll=True),
            *CUDA.block(*self._numbers.lines("first")),
            *CUDA.loop("chunk", "last", body, first="first", unroll=1),
        ]

    def _place(self) -> list[str]:
        """Print the declarations of the product and the columns of a block."""
        block, integer = self.block, self.block.batch.integer
        tiles, columns = (
            int(count(block.values)) for count in (block.sizes.column_tiles, block.sizes.columns)
        )
        return [
            f"const int first_column = own % {tiles} * {columns};",
            f"const {integer} batch = own / {tiles};",
            *split("batch", block.view.batch, block.batch.names, integer),
        ]

    def _copies(self, chunk: str, reads: bool) -> list[str]:
        """Print how copies of a chunk start, if there is one; without left factors if no state is
        read."""
        block = self.block
        stage = f"const u32 to = shared + next % {block.stages} * {block.stage_bytes};"
        tiles = list(zip(block.tiles("first_point"), block.places, strict=True))
        body = [stage, f"const int first_point = next * {block.chunk};"]
        body += [line for tile, place in tiles[not reads :] for line in tile.copy(f"to + {place}")]
        return CUDA.block(
            f"const int next = {chunk};",
            *CUDA.when("next < last", body),
            "tw::cp_async_commit();",
        )

    def _if_more(self, lines: list[str]) -> list[str]:
        """Print what is done for the chunks behind one, if there are some."""
        return CUDA.when("chunk + 1 < last", lines) if lines else []

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
        place = f"first_column + warp * {block.fragments * FRAGMENT} + j * {WIDE} + {PLACE}"
        for n, output in enumerate(view.outputs):
            kind = C_TYPES[output.array.dtype]
            value = scope.text(output.value)
            lines.append(f"pair{n}[e] = tw::from_float<{kind}>({value});")
            declared.append(f"{kind} pair{n}[2];")
            stores += store_pair(block.at, output, view.width, "place", f"pair{n}")
        total = "sums[i][j][h * 2 + e]"
        if view.carried.exclusive:  # the first position has no terms, whatever reads them
            total = f"{POINT} > 0 ? {total} : 0.0f"
        body = [
            f"const int column = tw_least(place + e, {view.width.extent - 1});",
            f"const float total = {total};",
            *lines,
        ]
        return [
            f"const int place = {place};",
            *declared,
            *CUDA.loop("e", 2, body, unroll=True),
            *stores,
        ]
