"""The plan of one chained kernel on Hopper: boxes, shared memory, names.

Shared memory has the rows of each warpgroup, then stages of keys, then stages of values, then
barriers, then the tickets that the producer thread hands to the others.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.last_to_come import LastToCome
from tilewright.spaces.cuda.chained_hopper.fetching.operands import (
    left_boxes,
    output_boxes,
    right_boxes,
    value_boxes,
)
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import Boxes
from tilewright.spaces.cuda.chained_hopper.raised import raised
from tilewright.spaces.cuda.chained_hopper.sizes import MOVED, ChainedSizes
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.chains.chain import FragmentChain
from tilewright.spaces.cuda.chains.ends import keys_of, open_grid
from tilewright.spaces.cuda.chains.spans import Spans
from tilewright.spaces.cuda.chains.splits.merging import PartMerging
from tilewright.spaces.cuda.chains.splits.rooms import Crew
from tilewright.spaces.cuda.chains.splits.splitting import SplitKeys
from tilewright.spaces.cuda.plan import Number, Size
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.derivation.chained.grouping import with_row_factors
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.kernel import OpenGrid
from tilewright.spaces.schedule import Value


@dataclass(frozen=True)
class ChainedPlan(SplitKeys):
    """The plan of the kernel of ``sizes.chained`` under the decisions ``values``."""

    sizes: ChainedSizes
    target: CudaTarget
    values: Mapping[str, Value]

    @cached_property
    def chained(self) -> Chained:
        """The program.

        In 8 bits, scales that are the same for all keys are multiplied first, and weights are
        raised into float8's range.
        """
        chained = self.sizes.chained
        return raised(with_row_factors(chained)) if self.sizes.has_bytes else chained

    warpgroups = Number()
    keys = Number()
    stages = Number()
    buffers = Number("query_buffers")
    """Tiles of rows that each warpgroup has at a time, one in work."""

    @property
    def in_registers(self) -> bool:
        """True if rows are multiplied from registers."""
        return self.values["query_storage"] == "registers"

    @property
    def registers(self) -> tuple[int, int] | None:
        """Registers of a consumer thread and of a producer thread, if they are moved; else None."""
        return MOVED.get(self.warpgroups)

    @property
    def blocks(self) -> int:
        """Blocks of the launch."""
        total = int(self.sizes.items(self.values))
        if self.values["tile_scheduler"] == "grid":
            return total
        return min(total, self.target.multiprocessors * self.number("blocks_per_sm"))

    @property
    def open_grid(self) -> OpenGrid | None:
        """The dependence of the launch on an open extent."""
        grid = open_grid(self.chained, int(self.sizes.rows(self.values)), self.split)
        return grid and replace(grid, most=self.blocks)

    @cached_property
    def access(self) -> Access[Chained]:
        """Names of the axes that are known for a head."""
        batch = enumerate(self.chained.batch)
        return Access(self.chained, {part.name: f"b{n}" for n, part in batch})

    @cached_property
    def row_access(self) -> Access[Chained]:
        """Names of the axes that are known for row ``r`` of a thread."""
        rows = enumerate(self.chained.rows)
        return self.access.knowing({part.name: f"p{n}[r]" for n, part in rows})

    @cached_property
    def spans(self) -> Spans:
        """The ranges of keys that rows see."""
        return Spans(self.access)

    # -- arrays ----------------------------------------------------------------------------------

    @cached_property
    def boxes(self) -> Mapping[str, Boxes]:
        """The boxes that TMA moves, by name: rows, keys, values, and the output if TMA stores
        it."""
        chained = self.chained
        output = {"output": self.output_box} if self.output_box else {}
        return {
            "rows": left_boxes(chained),
            "keys": right_boxes(self.sizes, self.keys),
            "values": value_boxes(self.sizes, self.keys),
            **output,
        }

    @cached_property
    def output_box(self) -> Boxes | None:
        """The boxes of the output, if this kernel stores it by TMA; else None."""
        return None if self.merges_later or self.is_cluster else output_boxes(self.chained)

    @property
    def weight_kind(self) -> str:
        """The C type of weights and values, which is also wgmma's name of it."""
        return C_TYPES[self.boxes["values"].array.dtype]

    @property
    def key_steps(self) -> int:
        """Instructions of wgmma along the keys of a tile."""
        return self.keys // self.sizes.terms

    @property
    def depth_steps(self) -> int:
        """Instructions of wgmma along the depth."""
        return self.sizes.depth // self.sizes.terms

    @property
    def score_product(self) -> str:
        """The name of the wgmma that computes scores."""
        source = "rs" if self.in_registers else "ss"
        majors = "_nt" if self.sizes.lies_along_keys else ""
        left, right = (C_TYPES[self.boxes[name].array.dtype] for name in ("rows", "keys"))
        shape = f"m64n{self.keys}k{self.sizes.terms}"
        return f"tw::wgmma_{shape}_f32_{left}_{right}_{source}{majors}"

    @property
    def sum_product(self) -> str:
        """The name of the wgmma that adds weighed values.

        Rows of the matrix run along its columns in memory, unless it is transposed.
        """
        shape, kind = f"m64n{self.sizes.width}k{self.sizes.terms}", self.weight_kind
        majors = "" if self.sizes.has_bytes else "_nt"
        return f"tw::wgmma_{shape}_f32_{kind}_{kind}_rs{majors}"

    # -- shared memory -----------------------------------------------------------------------------

    @property
    def region_bytes(self) -> int:
        """Bytes of a warpgroup's rows."""
        return self.sizes.region_bytes

    @property
    def keys_at(self) -> int:
        """Offset of the stages of keys."""
        return self.buffers * self.warpgroups * self.region_bytes

    key_bytes = Size()
    value_bytes = Size()

    @property
    def values_at(self) -> int:
        """Offset of the stages of values."""
        return self.keys_at + self.stages * self.key_bytes

    @cached_property
    def barriers(self) -> Mapping[str, tuple[int, int, int]]:
        """Each kind of barrier by name: its offset, the number of barriers, their arrivals."""
        rows, warps = self.buffers * self.warpgroups, 4 * self.warpgroups
        wanted = {
            "rows_full": (rows, 1),
            "rows_empty": (rows, 1),
            "keys_full": (self.stages, 1),
            "keys_empty": (self.stages, warps),
            "values_full": (self.stages, 1),
            "values_empty": (self.stages, warps),
            "ticket_full": (2, 1),
            "ticket_empty": (2, warps),
        }
        if self.is_cluster:  # its blocks have no tickets
            del wanted["ticket_full"], wanted["ticket_empty"]
            wanted["parts_full"] = (4, 1)
        found, at = {}, self.values_at + self.stages * self.value_bytes
        for name, (count, arrivals) in wanted.items():
            found[name] = (at, count, arrivals)
            at += 8 * count
        return found

    @property
    def tickets_at(self) -> int:
        """Offset of two tickets."""
        at, count, _ = list(self.barriers.values())[-1]
        return at + 8 * count

    @property
    def words_at(self) -> int:
        """Offset of each warpgroup's word."""
        return self.tickets_at + 8

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory of a block."""
        return self.words_at + 16

    @property
    def counter_bytes(self) -> int:
        """Bytes of the counter of tickets, at the beginning of the workspace."""
        return 128 if self.values["tile_scheduler"] == "tickets" else 0

    @property
    def has_workspace(self) -> bool:
        """True if blocks communicate through global memory."""
        return self.counter_bytes > 0 or (self.split > 1 and not self.is_cluster)

    @property
    def pairs(self) -> int:
        """Groups of eight columns of the sums."""
        return self.sizes.width // 8

    def later_merging(self, chain: FragmentChain) -> PartMerging:
        """Return the merge of a block of the second kernel: columns ``eight`` of 64 rows."""
        own = self.merging(chain)
        return replace(own, count=4, left=own.count, place=lambda i: f"eight * 4 + {i}")

    def merging(self, chain: FragmentChain) -> PartMerging:
        """Return the merge of a warpgroup's parts."""
        meet = ("tw::sync_named", f"{1 + self.warpgroups} + group", f"{GROUP}")
        word = f"shared + {self.words_at} + 4 * group"
        crew = Crew(
            tile=f"(tile_number * {self.warpgroups} + group)",
            thread="thread",
            last=LastToCome("ticket", word, "thread == 0", meet),
            workspace=f"workspace + {self.counter_bytes}",
        )
        tiles = int(self.sizes.tile_count(self.values)) * self.warpgroups
        count = self.sizes.width // 2
        sums = [lambda i: f"sums[{i}]"]
        return PartMerging(chain, self.split, tiles, GROUP, sums, count, crew)

    # -- lines that all roles have -----------------------------------------------------------------

    def key_tiles(self) -> list[str]:
        """Print the bounds, ``first_tile`` to ``end_tile``, of the tiles of keys that rows see.

        They are those of some row of the block; at least one, so that all rows take the same path.
        A part of split keys may have none.
        """
        rows = int(self.sizes.rows(self.values))
        last, n = keys_of(self.chained).last_tile(self.keys), self.keys
        names = ("all_first", "all_end") if self.split > 1 else ("first_tile", "end_tile")
        return [
            *self.spans.block_lines("row0", rows, "first_key", "end_key"),
            f"const i32 {names[0]} = (i32)tw_least(first_key / {n}, {last});",
            f"const i32 {names[1]} = (i32)tw_most((end_key + {n - 1}) / {n}, {names[0]} + 1);",
            *self._own_part(),
        ]

    def _own_part(self) -> list[str]:
        """Print the bounds of an equal share of the tiles, if keys are split; it may be empty."""
        if self.split == 1:
            return []
        share = f"(all_end - all_first) * {{}} / {self.split}"
        return [
            f"const i32 first_tile = all_first + {share.format('part')};",
            f"const i32 end_tile = all_first + {share.format('(part + 1)')};",
        ]

    @property
    def next_stage(self) -> str:
        """The C statement that moves on to the next stage of the rings."""
        return f"if (++stage == {self.stages}) {{ stage = 0; phase ^= 1; }}"

    @property
    def next_buffer(self) -> str:
        """The C statement that moves on to the next rows."""
        if self.buffers == 1:
            return "rows_phase ^= 1;"
        return f"if (++buffer == {self.buffers}) {{ buffer = 0; rows_phase ^= 1; }}"
