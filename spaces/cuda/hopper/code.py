"""The CUDA C++ of a matrix product on Hopper's warpgroup matrix instructions (wgmma).

A block consists of one producer, a warp or warpgroup that loads, and one to three consumers,
warpgroups that multiply. A ring of stages in shared memory lies between them: TMA fills a stage and
completes its ``full`` barrier; each consumer warp arrives at its ``empty`` barrier once wgmma has
read the stage. Blocks are persistent and walk over tiles, so that the next tile is loaded while the
last one is stored; only blocks that exchange sums in a cluster take one tile each.

``spaces.cuda.hopper.plan`` says what m and n are, ``spaces.cuda.hopper.consumer`` prints the
consumers.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.blocks.finish import signature
from tilewright.spaces.cuda.hopper.consumer import Consumer, corner
from tilewright.spaces.cuda.hopper.plan import HopperPlan
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.cuda.warpgroups import GROUP, WARPS
from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.kernels.text import CUDA

START = 15
"""The named barrier at which consumers wait until the producer has initialised the mbarriers."""
_WHEN_EMPTY = "tw::mbarrier_wait(empty + 8 * stage, phase ^ 1);"


@dataclass(frozen=True)
class HopperCode:
    """The kernel named ``entry`` that follows ``plan``."""

    plan: HopperPlan
    entry: str

    def kernel(self, prelude: str) -> Kernel:
        """Return the kernel with its launch; ``prelude`` defines what the epilogue calls."""
        plan = self.plan
        launch = Launch(
            grid=(plan.grid.blocks, 1, 1),
            block=(plan.threads, 1, 1),
            cluster=(plan.grid.cluster_size, 1, 1),
            shared_bytes=plan.shared_bytes,
            tensor_maps=tuple(self.tensor_maps.values()),
            open_grid=plan.grid.open_grid,
        )
        workspace = plan.split.workspace_bytes
        given = arguments(plan.product.inputs, plan.product.outputs)
        call = Call(self.entry, given, workspace, workspace, (launch,))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The CUDA C++ of the entry, after the table of tiles where the order needs one."""
        plan = self.plan
        # for whole warpgroups: registers are allocated like that, which ptxas does not know
        threads = round_up(plan.threads, GROUP)
        bounds = f"{threads}, {plan.number('blocks_per_sm')}"
        consuming = Consumer(plan, self._table).lines()
        body = [
            "const u32 shared = tw::shared_base();",
            f"const u32 full = shared + {plan.full_at}, empty = shared + {plan.empty_at};",
            "const int group = (int)tw::warp_uniform(threadIdx.x / 128);",
            *(["const u32 rank = tw::cluster_rank();"] if plan.grid.cluster_size > 1 else []),
            *(plan.segments.make() if plan.segments else []),
            *self._start(),
            *CUDA.when(f"group == {plan.consumers}", self._producer(), consuming),
        ]
        lines = [
            *plan.grid.table(self._table),
            *function(self.entry, bounds, self.parameters, body),
        ]
        return "\n".join(lines) + "\n"

    @property
    def parameters(self) -> str:
        """The parameters of the entry, in C."""
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
        """Print how one thread initialises the barriers, and all meet before they are used.

        A ``full`` barrier completes by one arrival and the bytes of its stage, an ``empty`` one by
        an arrival of each consumer warp of each block that the stage is loaded for. The thread that
        loads initialises them, so that it waits for no other, unless it loads for other blocks of a
        cluster.
        """
        plan = self.plan
        multiplying = WARPS * (1 if plan.takes_turns else plan.consumers)
        exchanged = f"shared + {plan.exchanged_at}"
        barriers = [
            "tw::mbarrier_init(full + 8 * i, 1);",
            f"tw::mbarrier_init(empty + 8 * i, {multiplying * plan.cluster_tiles});",
        ]
        started = [
            "tw::tma_prefetch(&m_map);",
            "tw::tma_prefetch(&n_map);",
            *CUDA.loop("i", plan.stages, barriers),
            *plan.slices.start_lines(exchanged),
            *plan.store.start_lines(f"shared + {plan.fetched_at}", plan.consumers),
            "tw::fence_barrier_init();",
            *plan.slices.expect_lines(exchanged),
        ]
        return [
            *CUDA.when(self._loads, started),
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
        """Print how a block of a cluster waits, at its end, until all its stages are empty.

        Its barriers must outlive the arrivals of other blocks. Loads by other blocks into this one
        need no wait here: its own warps have consumed them.
        """
        if self.plan.cluster_tiles == 1:
            return []
        return CUDA.loop("i", self.plan.stages, [_WHEN_EMPTY, self.plan.next_stage], unroll=1)

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
                f"const int m0 = {corner(plan, 0)};",
                f"const int n0 = {corner(plan, 1)};",
                # not unrolled: addresses would not fit the few registers of a producer thread
                *CUDA.loop("step", "steps", load, unroll=1),
            ]

        loading = [
            *["const u64 first = tw::evict_first();"] * plan.streams,
            "u32 stage = 0, phase = 0;",
            *plan.grid.emit(self._table, tile),
            *self._drain(),
        ]
        return [
            *([f"tw::registers_down<{given}>();"] if given else []),
            *CUDA.when(self._loads, loading),
            *plan.slices.others_lines(),
        ]
