"""The CUDA C++ of a contraction on Hopper's warpgroup matrix instructions.

A block is one warp or warpgroup that loads and one to three warpgroups that multiply. Between
them runs a ring of stages in shared memory: TMA fills a stage and completes its ``full`` barrier,
each multiplying warp reports to its ``empty`` barrier once wgmma has read it. Blocks stay and walk
over tiles, so that the next tile loads while the last one is stored; only blocks that exchange
sums in a cluster take one tile each. See ``spaces.cuda.hopper.plan`` for m and n.
"""

from __future__ import annotations

from dataclasses import dataclass

from spaces.algebra.index import index
from spaces.algebra.integers import round_up
from spaces.algebra.mapping_emit import indented
from spaces.cuda.blocks.copies.tile_copy import position_type
from spaces.cuda.blocks.finish import parts, signature
from spaces.cuda.blocks.segments import number_of
from spaces.cuda.hopper.multiply import MainLoop
from spaces.cuda.hopper.plan import HopperPlan
from spaces.cuda.hopper.sizes import GROUP, WARPS, group_registers
from spaces.cuda.hopper.tile import BLOCK
from spaces.cuda.tensor_map import TensorMapSpec
from spaces.kernel import Call, Kernel, Launch, Source, arguments

START = 15
"""Number of the named barrier at which multiplying warps wait for the ring to be made."""
_WHEN_EMPTY = "tw::mbarrier_wait(empty + 8 * stage, phase ^ 1);"


@dataclass(frozen=True)
class HopperCode:
    """The kernel called ``entry`` that follows ``plan``."""

    plan: HopperPlan
    entry: str

    def kernel(self, prelude: str) -> Kernel:
        """The kernel as a whole; ``prelude`` defines what the epilogue calls."""
        plan = self.plan
        launch = Launch(
            grid=(plan.grid.blocks, 1, 1),
            block=(plan.threads, 1, 1),
            cluster=(plan.grid.cluster_size, 1, 1),
            shared_bytes=plan.shared_bytes,
            tensor_maps=tuple(self.tensor_maps.values()),
        )
        workload, workspace = plan.product.workload, plan.split.workspace_bytes
        given = arguments(workload.inputs, workload.outputs)
        call = Call(self.entry, given, workspace, workspace, (launch,))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The entry, after the table it may need."""
        plan = self.plan
        # as if for whole warpgroups: registers are given out like that, which ptxas does not heed
        threads = round_up(plan.threads, GROUP)
        bounds = f"__launch_bounds__({threads}, {plan.number('residency')})"
        body = [
            "const u32 shared = tw::shared_base();",
            f"const u32 full = shared + {plan.full_at}, empty = shared + {plan.empty_at};",
            "const int group = (int)tw::warp_uniform(threadIdx.x / 128);",
            *(["const u32 rank = tw::cluster_rank();"] if plan.grid.cluster_size > 1 else []),
            *(plan.segments.make() if plan.segments else []),
            *self._start(),
            f"if (group == {plan.consumers}) {{",
            *indented(self._producer()),
            "} else {",
            *indented(self._consumer()),
            "}",
        ]
        lines = [
            *plan.grid.table(self._table),
            f'extern "C" __global__ void {bounds} {self.entry}({self.parameters}) {{',
            *indented(body),
            "}",
        ]
        return "\n".join(lines) + "\n"

    @property
    def parameters(self) -> str:
        """Of the entry, in C."""
        plan = self.plan
        return signature(plan.product, plan.split.workspace_bytes > 0, [*self.tensor_maps])

    @property
    def tensor_maps(self) -> dict[str, TensorMapSpec]:
        """All tensor maps by the names of their parameters."""
        plan = self.plan
        return {
            "m_map": plan.m.tensor_map,
            "n_map": plan.n.tensor_map,
            **plan.store.tensor_maps,
            **plan.n.further_maps,
        }

    @property
    def _table(self) -> str:
        return f"{self.entry}_order"

    def _start(self) -> list[str]:
        """Barriers: a stage is full by one arrival and its bytes, empty once every multiplying
        warp of every block that loads into it has reported.

        The thread that loads makes them: so it waits for nobody, unless it loads for other blocks.
        """
        plan = self.plan
        multiplying = WARPS * (1 if plan.takes_turns else plan.consumers)
        exchanged = f"shared + {plan.exchanged_at}"
        return [
            f"if ({self._loads}) {{",
            "  tw::tma_prefetch(&m_map);",
            "  tw::tma_prefetch(&n_map);",
            f"  for (int i = 0; i < {plan.stages}; i++) {{",
            "    tw::mbarrier_init(full + 8 * i, 1);",
            f"    tw::mbarrier_init(empty + 8 * i, {multiplying * plan.cluster_tiles});",
            "  }",
            *indented(plan.slices.start_lines(exchanged)),
            *indented(plan.store.start_lines(f"shared + {plan.fetched_at}", plan.consumers)),
            "  tw::fence_barrier_init();",
            *indented(plan.slices.expect_lines(exchanged)),
            "}",
            "tw::sync_warp();",
            *self._meet(),
            *plan.slices.ready_lines(),
        ]

    def _meet(self) -> list[str]:
        if self.plan.cluster_tiles > 1:
            # no block may load into another one, or report to it, before its barriers exist
            return ["tw::cluster_arrive_relaxed();", "tw::cluster_wait();"]
        everybody = f"({START}, {self.plan.threads});"
        return [
            f"if (group == {self.plan.consumers}) tw::arrive_named{everybody}",
            f"else tw::sync_named{everybody}",
        ]

    @property
    def _loads(self) -> str:
        return f"threadIdx.x == {self.plan.consumers * GROUP}"

    def _drain(self) -> list[str]:
        """A block's barriers must outlive the reports of others in its cluster: it ends once all
        its stages are empty. Loads by other blocks into this one need no wait here: its own warps
        have consumed them."""
        if self.plan.cluster_tiles == 1:
            return []
        return [
            "#pragma unroll 1",
            f"for (int i = 0; i < {self.plan.stages}; i++) {{",
            f"  {_WHEN_EMPTY}",
            f"  {self.plan.next_stage}",
            "}",
        ]

    def _producer(self) -> list[str]:
        plan = self.plan
        given = plan.number("producer_registers")
        load = [
            _WHEN_EMPTY,
            f"const u32 to = shared + stage * {plan.stage_bytes}, barrier = full + 8 * stage;",
            f"tw::mbarrier_arrive_expect(barrier, {plan.loaded_bytes});",
            f"const int depth0 = (first_step + step) * {plan.m.terms};",
            *plan.load(plan.m, "to", "m_map", "m0"),
            *plan.load(plan.n, f"to + {plan.m.bytes}", "n_map", "n0"),
            plan.next_stage,
        ]

        def tile() -> list[str]:
            return [
                *(plan.segments.skip() + plan.segments.find() if plan.segments else []),
                *(plan.trimmed.count() if plan.trimmed else []),
                f"const int m0 = {self._corner(0)};",
                f"const int n0 = {self._corner(1)};",
                # unrolled, addresses would not fit the few registers of a loading thread
                "#pragma unroll 1",
                "for (int step = 0; step < steps; step++) {",
                *indented(load),
                "}",
            ]

        return [
            *([f"tw::registers_down<{given}>();"] if given else []),
            f"if ({self._loads}) {{",
            *(["  const u64 first = tw::evict_first();"] if plan.streams else []),
            "  u32 stage = 0, phase = 0;",
            *indented(plan.grid.emit(self._table, tile)),
            *indented(self._drain()),
            "}",
            *plan.slices.others_lines(),
        ]

    def _corner(self, side: int, cast: str = "") -> str:
        """C text of where the block's tile begins along m (``side`` 0) or n."""
        plan = self.plan
        if plan.segments and plan.axes[side] == "row":
            return "first_row"
        return f"{cast}tile_{plan.axes[side]} * {plan.written[side]}"

    def _consumer(self) -> list[str]:
        plan = self.plan
        given = plan.number("producer_registers")
        registers = group_registers(plan.consumers, given)
        staging = [
            f"const u32 staging = shared + {plan.staging_at} + group * {plan.staging_bytes};",
            "u32 turn = 0;",
        ]
        fetching = [
            f"const u32 fetched = shared + {plan.fetched_at} + 8 * group;",
            "u32 fetched_phase = 0;",
        ]
        return [
            *([f"tw::registers_up<{registers}>();"] if given else []),
            f"const int thread = (int)threadIdx.x % {GROUP}, lane = thread % 32;",
            *(staging if plan.store.is_staged else []),
            *(fetching if plan.store.fetched else []),
            "u32 stage = 0, phase = 0;",
            *(self._in_turns() if plan.takes_turns else plan.grid.emit(self._table, self._next)),
            *plan.store.last_lines(),
        ]

    def _next(self) -> list[str]:
        """A tile, if there is one."""
        return [*(self.plan.segments.skip() if self.plan.segments else []), *self._tile()]

    def _in_turns(self) -> list[str]:
        """Tiles go round the warpgroups, and so does the right to multiply: a warpgroup that ran
        ahead would take an earlier phase of a ``full`` barrier for its own."""
        plan, last = self.plan, self.plan.consumers - 1

        def tile() -> list[str]:
            return [
                *(plan.segments.skip() if plan.segments else []),
                "if (whose == group) {",
                *indented(self._tile()),
                "} else {",
                "  stage += steps;",
                f"  phase ^= stage / {plan.stages} & 1;",
                f"  stage %= {plan.stages};",
                "}",
                f"whose = whose == {last} ? 0 : whose + 1;",
            ]

        return [
            "int whose = 0;",
            f"if (group == {last}) tw::arrive_named({self._turn('0')});",
            *plan.grid.emit(self._table, tile),
            f"if (whose == group) tw::sync_named({self._turn('group')});",
        ]

    def _turn(self, group: str) -> str:
        """Arguments of the named barrier at which ``group`` gets its turn from the one before."""
        return f"{1 + self.plan.consumers} + {group}, {2 * GROUP}"

    def _pass_over(self) -> list[str]:
        """A warpgroup all of whose rows are past the end of the segment only empties the stages."""
        plan = self.plan
        if plan.segments is None or plan.takes_turns or plan.swapped or plan.consumers == 1:
            return []
        return ["if (row0 >= end_row) {", *indented(MainLoop(plan).idle()), "  continue;", "}"]

    def _tile(self) -> list[str]:
        """What a multiplying warpgroup does with a tile."""
        plan = self.plan
        position, (m_axis, n_axis) = position_type(plan.product), plan.axes
        own, member = f" + group * {plan.blocks * BLOCK}", "group"
        turn, turn_over = list[str](), list[str]()
        own_slice = f" + part * {plan.slice_columns}" if plan.parts[1] > 1 else ""
        if plan.takes_turns:
            following = f"(group + 1) % {plan.consumers}"
            own, member = "", "0"
            turn = [f"tw::sync_named({self._turn('group')});"]
            turn_over = [f"tw::arrive_named({self._turn(following)});"]
        rank = " + rank" if plan.cluster_tiles > 1 else ""
        place, number = "place", index("(i64)number", plan.product.batches)
        if plan.segments:
            number = number_of(plan.product, "i64")
        elif plan.product.batch:
            place = f"(number * {plan.grid.places} + place)"
        factors = (plan.product.left, plan.product.right)
        operands = [o for o in plan.product.numbered if o not in factors]
        return [
            *(plan.segments.find() if plan.segments else []),
            *(plan.trimmed.count() if plan.trimmed else []),
            f"const {position} {m_axis}0 = {self._corner(0, f'({position})')}{own};",
            f"const {position} {n_axis}0 = {self._corner(1, f'({position})')}{own_slice};",
            *parts(plan.product, operands, number),
            *plan.store.fetch_lines(),
            *turn,
            *self._pass_over(),
            *MainLoop(plan).lines(turn_over),
            *plan.slices.lines(f"shared + {plan.received_at}", f"shared + {plan.exchanged_at}"),
            *plan.split.lines(
                f"{place} * {plan.cluster_tiles}{rank}",
                member,
                f"shared + {plan.slots_at} + 4 * group",
                plan.store.lines(),
            ),
        ]
