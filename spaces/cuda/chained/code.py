"""The CUDA C++ of a chained kernel by ``mma.sync``: scores, chain and sums of a block of rows.

A block has rows of one product (queries of one head) that its warps share, slices of sixteen for
each warp. Tiles of keys are copied to a ring in shared memory, steps ahead. For each one, a warp
multiplies scores into registers, turns them to weights there, corrects its sums, and multiplies the
weights into them: the accumulators of the first product are the operand of the second one, lane by
lane. Tiles outside of all rows' keys are not visited; those within test nothing. As task mappings:

    spatial(products, row tiles, slices of the width) * repeat(tiles of keys)
        * spatial(warps) * repeat(slices) * (the fragments of a warp)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.cuda import scalar_math, whole_numbers, wide
from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.chained.block import Block
from tilewright.spaces.cuda.chained.columns import Columns
from tilewright.spaces.cuda.chained.ending import Ending
from tilewright.spaces.cuda.chained.multiplying import Multiplying
from tilewright.spaces.cuda.chained.operands import Operands
from tilewright.spaces.cuda.chained.rows import BlockRows
from tilewright.spaces.cuda.chains import lanes
from tilewright.spaces.cuda.chains.ends import open_grid, open_parameter
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, OpenGrid, Source
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.magnitude import magnitudes


@dataclass(frozen=True)
class ChainedCode:
    """The kernel named ``entry`` whose blocks follow ``block``."""

    block: Block
    entry: str

    @cached_property
    def operands(self) -> Operands:
        """The operands in shared memory."""
        return Operands(self.block)

    def kernel(self, arguments: tuple[Argument, ...], functions: frozenset[str]) -> Kernel:
        """Return the kernel with all its launches, for a program that calls ``functions``."""
        launch = Launch(
            (int(self.block.sizes.blocks(self.block.values)), 1, 1),
            (self.block.threads, 1, 1),
            (self.block.split if self.block.is_cluster else 1, 1, 1),
            shared_bytes=int(self.block.sizes.shared_bytes(self.block.values)),
            open_grid=self._open_grid(self.block.split),
        )
        called = {*functions, "floor"}
        has_places = bool(self.block.chained.found_places)
        prelude = scalar_math.prelude(called) + lanes.helpers(has_places) + whole_numbers.HELPERS
        chained = self.block.chained
        prelude += wide.helpers(magnitudes(chained.program), chained.expressions)
        merging = self.block.merging
        call = Call(
            self.entry,
            arguments,
            merging.workspace_bytes,
            merging.zeroed_bytes,
            (launch, *self._merge_launch()),
        )
        return Kernel(Source("cuda", prelude, self.source), call)

    def _merge_launch(self) -> list[Launch]:
        if not self.block.merges_later:
            return []
        groups, early = Ending(self.block).groups, self.block.begins_early
        return [
            Launch(
                (self.block.merging.tiles * groups, 1, 1),
                (self.block.team_threads, 1, 1),
                entry=self._merger,
                early=early,
                open_grid=self._open_grid(groups),
            )
        ]

    def _open_grid(self, blocks: int) -> OpenGrid | None:
        """Return how the grid of so many ``blocks`` for each tile depends on an open extent."""
        slices = int(self.block.sizes.slices(self.block.values))
        return open_grid(self.block.chained, self.block.rows, slices * blocks)

    # -- text --------------------------------------------------------------------------------------

    @property
    def source(self) -> str:
        """The CUDA C++ of the entry, and of the kernel that merges if there is one."""
        bounds = f"{self.block.threads}, {self.block.number('blocks_per_sm')}"
        functions = self._function(self.entry, bounds, [*self._threads(), *self._body()])
        if self.block.merges_later:
            ending = Ending(replace(self.block))  # a fresh chain, which has written no tiles
            # without a number of blocks, the compiler may limit registers and spill
            bounds = f"{self.block.team_threads}, 1"
            body = ["const int warp = threadIdx.x / 32;", *ending.merging_lines()]
            if self.block.begins_early:
                body = ["tw::await_launches();", *body]
            functions += self._function(self._merger, bounds, body, self.block.begins_early)
        return "\n".join(functions) + "\n"

    @property
    def _merger(self) -> str:
        return f"{self.entry}_merge"

    def _function(
        self, name: str, bounds: str, body: Sequence[str], early: bool = False
    ) -> list[str]:
        """Return a kernel function; other kernels write the workspace while an ``early`` one
        runs."""
        alone = "" if early else "__restrict__ "
        workspace = [f"u8 *{alone}workspace"] if self.block.merging.split > 1 else []
        given = [self.block.batch.parameters(), *workspace, *open_parameter(self.block.chained)]
        lines = ["const int lane = threadIdx.x % 32;", *body]
        return function(name, bounds, ", ".join(given), lines)

    def _threads(self) -> list[str]:
        """Print the declarations of a thread's warp and, if there are several, its team."""
        block = self.block
        if block.teams == 1:
            return ["const int warp = threadIdx.x / 32;"]
        return [
            f"const int warp = threadIdx.x / 32 % {block.number('warps')};",
            f"const int team = threadIdx.x / {block.team_threads};",
            f"const int thread = threadIdx.x % {block.team_threads};",
        ]

    def _body(self) -> list[str]:
        block, rows = self.block, BlockRows(self.block)
        # written first: they declare what rows need
        loop, ending = self.loop(), Ending(block).lines()
        return [
            f"constexpr int TW_KEYS = {block.keys};",
            "const u32 shared = tw::shared_base();",
            *["tw::allow_launch();"] * block.begins_early,
            *self._number(),
            *rows.place("tile_number"),
            *rows.begin(),
            *block.spans.block_lines("first_row", block.rows, "first_key", "last_key"),
            *self._warp_spans(),
            *self.operands.load_rows(),
            *block.declare_sums(block.pairs),
            *loop,
            *Columns(block).settle(),
            *ending,
        ]

    def _number(self) -> list[str]:
        """Print the declarations of a block's tile of rows, and of its part of the keys."""
        if self.block.split == 1:
            return ["const int tile_number = (int)blockIdx.x;"]
        sharer = f"team * {self.block.split} + part" if self.block.teams > 1 else "part"
        return [
            f"const int part = (int)blockIdx.x % {self.block.split};",
            *[f"const int sharer = {sharer};"] * self.block.is_cluster,
            f"const int tile_number = (int)blockIdx.x / {self.block.split};",
        ]

    def _warp_spans(self) -> list[str]:
        rows = self.block.slices * FRAGMENT
        return [
            *self.block.spans.block_lines("warp_row", rows, "own_first", "own_last"),
            *self.block.spans.whole_lines("warp_row", rows, "whole_first", "whole_last"),
        ]

    def loop(self) -> list[str]:
        """Print the loop over all tiles of keys, some steps behind their copies."""
        block, stages, size = self.block, self.block.number("stages"), self.block.stage_bytes
        keys, ahead = block.keys, stages - 1
        stage = f"const u32 stage = {self.ring} + step % {stages} * {size};"
        multiplied = [stage, *Multiplying(block, self.operands).lines()]
        body = [
            f"tw::cp_async_wait<{ahead - 1}>();",
            self.meeting,
            *self._copies(f"tile + {ahead * keys}", f"(step + {ahead}) % {stages} * {size}"),
            *CUDA.when(f"tile < own_last && tile + {keys} > own_first", multiplied),
        ]
        begun = self._copies(f"begin_key + step * {keys}", f"step * {size}")
        step = f"{keys}, step++"
        return [
            f"int begin_key = (int)first_key / {keys} * {keys};",
            *self.own_part(),
            *CUDA.loop("step", ahead, begun, unroll=True),
            *self.rows_are_there(ahead),
            "int step = 0;",
            *CUDA.loop("tile", "last_key", body, first="begin_key", step=step),
        ]

    def _copies(self, tile: str, stage: str) -> list[str]:
        """Print how copies of a tile of keys start, if there is one."""
        copies = self.operands.load_keys("next_tile", "to")
        return [
            f"const int next_tile = {tile};",
            *CUDA.when("next_tile < last_key", [f"const u32 to = {self.ring} + {stage};", *copies]),
            "tw::cp_async_commit();",
        ]

    @property
    def ring(self) -> str:
        """C text of where a team's stages are."""
        return "shared" if self.block.teams == 1 else "ring"

    @property
    def meeting(self) -> str:
        """The C call at which a team's threads meet before a tile."""
        if self.block.teams == 1:
            return "tw::sync_block();"
        if self.block.team_threads == WARP:
            return "tw::sync_warp();"
        return f"tw::sync_named(1 + team, {self.block.team_threads});"

    def rows_are_there(self, ahead: int) -> list[str]:
        """Print how all threads wait for rows in shared memory, which all teams copied."""
        if self.block.teams == 1 or self.block.values["query_storage"] != "shared":
            return []
        return [f"tw::cp_async_wait<{ahead}>();", "tw::sync_block();"]

    def own_part(self) -> list[str]:
        """Print an equal share of the tiles, if keys are split over blocks or teams."""
        keys, split, teams = self.block.keys, self.block.split, self.block.teams
        ring = f"const u32 ring = shared + team * {self.block.ring_bytes};"
        parts, part = split * teams, self.block.key_part
        if parts == 1:
            return []
        return [
            *[ring] * (teams > 1),
            f"const int all = ((int)last_key - begin_key + {keys - 1}) / {keys};",
            f"const int share = (all + {parts - 1}) / {parts} * {keys};",
            f"begin_key += {part} * share;",
            "last_key = tw_least(last_key, begin_key + share);",
        ]
