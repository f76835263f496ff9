"""The CUDA C++ of a contraction on Hopper's warpgroup matrix instructions.

A block is one warp or warpgroup that loads and one to three warpgroups that multiply. Between
them runs a ring of stages in shared memory: TMA fills a stage and completes its ``full`` barrier,
each multiplying warp reports to its ``empty`` barrier once wgmma has read it. Blocks stay and walk
over tiles, so that the next tile loads while the last one is stored.

wgmma multiplies 64 rows at a time; the side of the product that they run along is called m, the
other n. Swapped, m runs along the output's columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from spaces.cuda.abi import TENSOR_MAPS
from spaces.cuda.finish import Finish, signature
from spaces.cuda.hopper_grid import PersistentGrid
from spaces.cuda.hopper_split import SharedDepth
from spaces.cuda.hopper_store import TileStore
from spaces.cuda.hopper_tile import BLOCK, STEP_BYTES, OperandTile
from spaces.cuda.target import CudaTarget
from spaces.cuda.tile_copy import position_type
from spaces.cuda.unrolled import unrolled
from spaces.dtypes import dtype
from spaces.index import Index, index
from spaces.integers import ceil_div, round_up
from spaces.kernel import Kernel, Launch
from spaces.mapping import repeat
from spaces.product import Product
from spaces.schedule import Value

GROUP = 128
WARPS = 4
CLUSTERS = {"1x1": (1, 1), "2x1": (2, 1), "1x2": (1, 2)}
"""Tiles of a cluster along m and n."""
ELEMENTS = {
    "float16": "f16",
    "bfloat16": "bf16",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}
"""wgmma's names of the types it multiplies here."""


def launch_registers(threads: int) -> int:
    """Registers each of a block's threads may have. They lie in four banks, a warp's in one, so
    that a lone warp costs as much as four."""
    return int(min(65536 // int(round_up(threads, GROUP)) // 8 * 8, 255))


def group_registers(consumers: int, producer_registers: int) -> int:
    """Registers a thread of a multiplying warpgroup may have: what a loading warpgroup that keeps
    ``producer_registers`` leaves of those all threads start with, or where that is 0 and one warp
    loads, the latter."""
    if not producer_registers:
        return launch_registers(consumers * GROUP + 32)
    groups = consumers + 1
    pool = launch_registers(groups * GROUP) * groups
    return (pool - producer_registers) // consumers // 8 * 8


@dataclass(frozen=True)
class HopperCode:
    """The kernel called ``entry`` of ``product`` under the decisions ``values``."""

    product: Product
    target: CudaTarget
    values: Mapping[str, Value]
    entry: str

    def number(self, name: str) -> int:
        """An integer decision."""
        return int(self.values[name])

    # -- extents -------------------------------------------------------------------------------

    @property
    def swapped(self) -> bool:
        """Whether m runs along the output's columns."""
        return bool(self.values["swapped"])

    @property
    def tile(self) -> tuple[int, int]:
        """Extents along m and n of a block's tile."""
        return self.number("block_m"), self.number("block_n")

    @property
    def consumers(self) -> int:
        """Warpgroups that multiply."""
        return self.number("consumers")

    @property
    def takes_turns(self) -> bool:
        """Whether each warpgroup computes whole tiles, in turn (ping-pong)."""
        return self.values["schedule"] == "pingpong"

    @property
    def blocks(self) -> int:
        """Blocks of 64 along m that one warpgroup computes."""
        return self.tile[0] // BLOCK // (1 if self.takes_turns else self.consumers)

    @property
    def registers(self) -> int:
        """Sums of a thread in each block."""
        return self.tile[1] // 2

    @property
    def promotion(self) -> int:
        """Steps after which products are added to the sums by ordinary additions; 0 for never.

        wgmma on float8 keeps about 14 bits of its sums (DeepSeek-V3 Technical Report, section
        3.3.2), so that long sums lose bits that adding up in float32 keeps.
        """
        return int(self.values.get("promotion", 0))

    @property
    def stages(self) -> int:
        """Stages of the ring."""
        return self.number("stages")

    @property
    def producer_threads(self) -> int:
        """A warp, or a warpgroup where registers are moved to the others."""
        return GROUP if self.number("producer_registers") else 32

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.consumers * GROUP + self.producer_threads

    @property
    def cluster(self) -> tuple[int, int]:
        """Tiles of a cluster along m and n."""
        return CLUSTERS[str(self.values["cluster"])]

    @property
    def cluster_size(self) -> int:
        """Blocks of a cluster."""
        return self.cluster[0] * self.cluster[1]

    def _rows_and_columns(self, sides: tuple[int, int]) -> tuple[int, int]:
        """What lies along m and n, put along the output's rows and columns."""
        return (sides[1], sides[0]) if self.swapped else sides

    @property
    def _axes(self) -> tuple[str, str]:
        """What m and n run along in the output."""
        return ("column", "row") if self.swapped else ("row", "column")

    @cached_property
    def m(self) -> OperandTile:
        """The operand along m."""
        return self._operand(0)

    @cached_property
    def n(self) -> OperandTile:
        """The operand along n."""
        return self._operand(1)

    def _operand(self, side: int) -> OperandTile:
        """Tiles next to each other along one side share the operand of the other side."""
        along_rows = (side == 0) != self.swapped
        return OperandTile(
            self.product.left if along_rows else self.product.right,
            self.product.row if along_rows else self.product.column,
            self.product.depth,
            self.tile[side],
            self.number("depth") * self.product.left.element.bytes,
            self.cluster[1 - side],
        )

    @cached_property
    def grid(self) -> PersistentGrid:
        """Blocks to tiles."""
        block_rows, block_columns = self._rows_and_columns(self.tile)
        return PersistentGrid(
            (
                int(ceil_div(self.product.rows, block_rows)),
                int(ceil_div(self.product.columns, block_columns)),
            ),
            self._rows_and_columns(self.cluster),
            int(ceil_div(self.product.terms, self.m.terms)),
            self.number("splits"),
            str(self.values["raster"]),
            self.number("group"),
            self.target.multiprocessors,
        )

    @cached_property
    def split(self) -> SharedDepth:
        """The exchange of sums between clusters that share tiles."""
        members = 1 if self.takes_turns else self.consumers
        tiles = self.grid.places * self.cluster_size
        return SharedDepth(self.number("splits"), tiles, members, self.blocks, self.registers)

    @cached_property
    def store(self) -> TileStore:
        """The way of the sums to the output. A cluster's last tiles may stick out altogether."""
        rows, columns = self._rows_and_columns(
            (self.tile[0] * self.cluster[0], self.tile[1] * self.cluster[1])
        )
        finish = Finish(self.product, rows, columns)
        buffers = self.number("staging")
        return TileStore(finish, self.swapped, self.blocks, self.tile[1], buffers)

    # -- shared memory: stages, staging buffers, barriers, a word for each warpgroup ---------------

    @property
    def stage_bytes(self) -> int:
        """Bytes of a stage: the tile along m, then the one along n."""
        return self.m.bytes + self.n.bytes

    @property
    def _staging_at(self) -> int:
        return self.stages * self.stage_bytes

    @property
    def _staging_bytes(self) -> int:
        """Bytes of one warpgroup's staging buffers."""
        return self.store.buffers * self.store.buffer_bytes if self.store.is_staged else 0

    @property
    def _full_at(self) -> int:
        return self._staging_at + self.consumers * self._staging_bytes

    @property
    def _empty_at(self) -> int:
        return self._full_at + 8 * self.stages

    @property
    def _slots_at(self) -> int:
        return self._empty_at + 8 * self.stages

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self._slots_at + 4 * self.consumers

    # -- text ----------------------------------------------------------------------------------

    def kernel(self, prelude: str) -> Kernel:
        """The kernel as a whole; ``prelude`` defines what the epilogue calls."""
        maps = [self.m.tensor_map, self.n.tensor_map]
        if self.store.is_staged:
            maps.append(self.store.tensor_map)
        return Kernel(
            language="cuda",
            entry=self.entry,
            prelude=prelude,
            source=self.source,
            arguments=self.product.workload.operands,
            workspace_bytes=self.split.workspace_bytes,
            workspace_zeroed=self.split.workspace_bytes,
            launch=Launch(
                (self.grid.blocks, 1, 1),
                (self.threads, 1, 1),
                (self.cluster_size, 1, 1),
                self.shared_bytes,
            ),
            metadata={TENSOR_MAPS: tuple(maps)},
        )

    @property
    def _table(self) -> str:
        return f"{self.entry}_order"

    @property
    def source(self) -> str:
        """The entry, after the table it may need."""
        maps = ["m_map", "n_map", *(["output_map"] if self.store.is_staged else [])]
        parameters = signature(self.product, self.split.workspace_bytes > 0, maps)
        body = [
            "const u32 shared = tw::shared_base();",
            f"const u32 full = shared + {self._full_at}, empty = shared + {self._empty_at};",
            "const int group = (int)tw::warp_uniform(threadIdx.x / 128);",
            *(["const u32 rank = tw::cluster_rank();"] if self.cluster_size > 1 else []),
            *self._start(),
            f"if (group == {self.consumers}) {{",
            *_indented(self._producer()),
            "} else {",
            *_indented(self._consumer()),
            "}",
            *self._end(),
        ]
        lines = [
            *self.grid.table(self._table),
            f'extern "C" __global__ void __launch_bounds__({self.threads}, 1) '
            f"{self.entry}({parameters}) {{",
            *_indented(body),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _start(self) -> list[str]:
        """Barriers: a stage is full by one arrival and its bytes, empty once every multiplying
        warp of every block that loads into it has reported."""
        releases = WARPS * (1 if self.takes_turns else self.consumers) * self.cluster_size
        return [
            "if (threadIdx.x == 0) {",
            f"  for (int i = 0; i < {self.stages}; i++) {{",
            "    tw::mbarrier_init(full + 8 * i, 1);",
            f"    tw::mbarrier_init(empty + 8 * i, {releases});",
            "  }",
            "  tw::fence_barrier_init();",
            "}",
            # no block may load into another one, or report to it, before its barriers exist
            "tw::sync_cluster();" if self.cluster_size > 1 else "tw::sync_block();",
        ]

    def _end(self) -> list[str]:
        """A block's shared memory must outlive what others of its cluster send there."""
        return ["tw::sync_warp();", "tw::sync_cluster();"] if self.cluster_size > 1 else []

    def _next_stage(self) -> str:
        return f"if (++stage == {self.stages}) {{ stage = 0; phase ^= 1; }}"

    def _producer(self) -> list[str]:
        given = self.number("producer_registers")
        m_axis, n_axis = self._axes
        starts = [
            f"const int m0 = tile_{m_axis} * {self.tile[0]};",
            f"const int n0 = tile_{n_axis} * {self.tile[1]};",
        ]
        load = [
            "tw::mbarrier_wait(empty + 8 * stage, phase ^ 1);",
            f"const u32 to = shared + stage * {self.stage_bytes}, barrier = full + 8 * stage;",
            f"tw::mbarrier_arrive_expect(barrier, {self.stage_bytes});",
            f"const int depth0 = (first_step + step) * {self.m.terms};",
            *self.m.load("to", "m_map", "barrier", "m0", "depth0"),
            *self.n.load(f"to + {self.m.bytes}", "n_map", "barrier", "n0", "depth0"),
            self._next_stage(),
        ]

        def tile() -> list[str]:
            return [
                *starts,
                # unrolled, addresses would not fit the few registers of a loading thread
                "#pragma unroll 1",
                "for (int step = 0; step < steps; step++) {",
                *_indented(load),
                "}",
            ]

        return [
            *([f"tw::registers_down<{given}>();"] if given else []),
            f"if (threadIdx.x == {self.consumers * GROUP}) {{",
            "  tw::tma_prefetch(&m_map);",
            "  tw::tma_prefetch(&n_map);",
            "  u32 stage = 0, phase = 0;",
            *_indented(self.grid.emit(self._table, tile)),
            "}",
        ]

    def _consumer(self) -> list[str]:
        given = self.number("producer_registers")
        staging = [
            f"const u32 staging = shared + {self._staging_at} + group * {self._staging_bytes};",
            "u32 turn = 0;",
        ]
        return [
            *([f"tw::registers_up<{group_registers(self.consumers, given)}>();"] if given else []),
            f"const int thread = (int)threadIdx.x % {GROUP}, lane = thread % 32;",
            *(staging if self.store.is_staged else []),
            "u32 stage = 0, phase = 0;",
            *(self._in_turns() if self.takes_turns else self.grid.emit(self._table, self._tile)),
            *self.store.last_lines(),
        ]

    def _in_turns(self) -> list[str]:
        """Tiles go round the warpgroups, and so does the right to multiply: a warpgroup that ran
        ahead would take an earlier phase of a ``full`` barrier for its own."""
        both = 2 * GROUP
        sync = f"tw::sync_named({1 + self.consumers} + group, {both});"
        last = self.consumers - 1

        def tile() -> list[str]:
            return [
                "if (whose == group) {",
                f"  {sync}",
                *_indented(self._tile()),
                "} else {",
                "  stage += steps;",
                f"  phase ^= stage / {self.stages} & 1;",
                f"  stage %= {self.stages};",
                "}",
                f"whose = whose == {last} ? 0 : whose + 1;",
            ]

        return [
            "int whose = 0;",
            f"if (group == {last}) tw::arrive_named({1 + self.consumers}, {both});",
            *self.grid.emit(self._table, tile),
            f"if (whose == group) {sync}",
        ]

    def _tile(self) -> list[str]:
        """What a multiplying warpgroup does with a tile."""
        position = position_type(self.product)
        own = "" if self.takes_turns else f" + group * {self.blocks * BLOCK}"
        m_axis, n_axis = self._axes
        m0, n0 = (
            f"({position})tile_{axis} * {extent}"
            for axis, extent in zip(self._axes, self.tile, strict=True)
        )
        turn_over = []
        if self.takes_turns:
            following = f"{1 + self.consumers} + (group + 1) % {self.consumers}"
            turn_over = [f"tw::arrive_named({following}, {2 * GROUP});"]
        member = "0" if self.takes_turns else "group"
        rank = " + rank" if self.cluster_size > 1 else ""
        slot = f"shared + {self._slots_at} + 4 * group"
        end = self.split.lines(
            f"place * {self.cluster_size}{rank}", member, slot, self.store.lines()
        )
        return [
            f"const {position} {m_axis}0 = {m0}{own};",
            f"const {position} {n_axis}0 = {n0};",
            *self._declare_sums(),
            "for (int step = 0; step < steps; step++) {",
            *_indented(self._multiply()),
            "}",
            *turn_over,
            *self._drain(),
            *(f"tw::settle(sums[{block}]);" for block in range(self.blocks)),
            *end,
        ]

    def _declare_sums(self) -> list[str]:
        shape = f"[{self.blocks}][{self.registers}]"
        return [
            f"float sums{shape} = {{}}, fresh{shape};" if self.promotion else f"float sums{shape};"
        ]

    def _multiply(self) -> list[str]:
        """One stage. wgmma of the step before may still run when ``in_flight``."""
        own = "" if self.takes_turns else f" + group * {self.blocks * self.m.block_bytes}"
        in_flight = self.number("in_flight")
        release = self._release("stage")
        if in_flight:
            before = f"stage == 0 ? {self.stages - 1} : stage - 1"
            release = ["if (step > 0) {", *_indented(self._release(f"({before})")), "}"]
        return [
            "tw::mbarrier_wait(full + 8 * stage, phase);",
            f"const u32 at = shared + stage * {self.stage_bytes};",
            f"const u64 m_tile = {self.m.descriptor('at' + own)};",
            f"const u64 n_tile = {self.n.descriptor(f'at + {self.m.bytes}')};",
            "tw::wgmma_fence();",
            *self._products(),
            "tw::wgmma_commit();",
            f"tw::wgmma_wait<{in_flight}>();",
            *release,
            *(self._promote() if self.promotion else []),
            self._next_stage(),
        ]

    def _promote(self) -> list[str]:
        """Add what was multiplied since the last time to the sums."""

        def body(indices: tuple[Index, ...]) -> list[str]:
            block, register = indices
            return [f"sums[{block.text}][{register.text}] += fresh[{block.text}][{register.text}];"]

        halves = repeat(self.blocks, self.registers // 8) * repeat(1, 8)
        every = self.promotion
        return [
            f"if (step % {every} == {every - 1} || step + 1 == steps) {{",
            *(f"  tw::settle(fresh[{block}]);" for block in range(self.blocks)),
            *_indented(unrolled(halves, 0, body, "q")),
            "}",
        ]

    def _drain(self) -> list[str]:
        if not self.number("in_flight"):
            return []
        before = f"stage == 0 ? {self.stages - 1} : stage - 1"
        return ["tw::wgmma_wait<0>();", *self._release(f"({before})")]

    def _products(self) -> list[str]:
        """All wgmma of a stage; a descriptor counts in 16 bytes."""
        element = ELEMENTS[self.m.operand.dtype]
        size = dtype(self.m.operand.dtype).bytes
        majors = "_" + "".join("n" if t.runs_deep else "t" for t in (self.m, self.n))
        name = (
            f"wgmma_m{BLOCK}n{self.tile[1]}k{STEP_BYTES // size}_f32_{element}_{element}_ss"
            f"{majors if size == 2 else ''}"
        )

        def body(indices: tuple[Index, ...]) -> list[str]:
            step, block = indices
            m_offset = step * (self.m.step_bytes // 16) + block * (self.m.block_bytes // 16)
            n_offset = step * (self.n.step_bytes // 16)
            return [
                f"tw::{name}({sums}[{block.text}], {(index('m_tile') + m_offset).text}, "
                f"{(index('n_tile') + n_offset).text}, ({since} | {step}) != 0);"
            ]

        sums, since = "sums", "step"
        if self.promotion:
            sums, since = "fresh", f"step % {self.promotion}"
        steps = self.m.depth_bytes // STEP_BYTES
        return unrolled(repeat(steps, self.blocks), 0, body, "k")

    def _release(self, stage: str) -> list[str]:
        """Report a stage to the blocks that load into it. Every warp does, since waiting for
        wgmma tells a warp of its own part only (PTX ISA, wgmma.wait_group)."""
        if self.cluster_size == 1:
            return [f"if (lane == 0) tw::mbarrier_arrive(empty + 8 * {stage});"]
        return [
            f"if (lane < {self.cluster_size})",
            f"  tw::mbarrier_arrive_remote(tw::map_shared(empty + 8 * {stage}, lane));",
        ]


def _indented(lines: list[str]) -> list[str]:
    return [f"  {line}" for line in lines]
