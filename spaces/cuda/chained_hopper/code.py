"""The CUDA C++ of a chain over the columns of a product, such as attention, on Hopper.

A block has one to four consumer warpgroups and one that loads. TMA brings rows (queries) once, and
tiles of keys, and of the matrix that has a row for each key (values), into rings of stages. A
consumer has 64 rows: it computes scores of a tile of keys by wgmma, runs the chain on the
accumulators, which makes weights of them, and adds weighed values by another wgmma that takes
weights from registers. Keys go from the last to the first. Tiles that no row of a block sees are
never visited. A matrix of 8 bits is transposed by a kernel before
(:mod:`spaces.cuda.chained_hopper.fetching.transposing`).

As task mappings: spatial(blocks) * repeat(tiles of rows) * spatial(warpgroups), and for each
repeat(tiles of keys), products of 64 rows and the chain between them.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cuda import scalar_math, whole_numbers, wide
from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.chained_hopper.copying import THREADS, Copying
from tilewright.spaces.cuda.chained_hopper.fetching.loading import Loading
from tilewright.spaces.cuda.chained_hopper.fetching.transposing import TransposedCopy
from tilewright.spaces.cuda.chained_hopper.multiplying import Multiplying
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chains import lanes
from tilewright.spaces.cuda.chains.ends import open_grid, open_parameter
from tilewright.spaces.cuda.chains.splits.sending import ALL_READY, READY
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.magnitude import magnitudes


@dataclass(frozen=True)
class ChainedHopperCode:
    """The kernel named ``entry`` that follows ``plan``."""

    plan: ChainedPlan
    entry: str

    def kernel(self, arguments: tuple[Argument, ...], functions: frozenset[str]) -> Kernel:
        """Return the kernel with all its launches, for a program that calls ``functions``."""
        plan = self.plan
        launch = Launch(
            grid=(plan.blocks, 1, 1),
            block=(self._threads, 1, 1),
            cluster=(plan.split if plan.is_cluster else 1, 1, 1),
            shared_bytes=plan.shared_bytes,
            tensor_maps=tuple(box.tensor_map for box in plan.boxes.values()),
            open_grid=plan.open_grid,
        )
        merging = plan.merging(Multiplying(plan).rows.chain)
        sizes = (0, 0) if plan.is_cluster else (merging.workspace_bytes, merging.zeroed_bytes)
        workspace, zeroed = (plan.counter_bytes + size for size in sizes)
        launches = (launch, *self._merge_launch())
        if self._transposed:
            copying = Copying(self._transposed, arguments, workspace)
            workspace = copying.workspace_bytes
            launches = copying.launches(self._transposer, launches)
        call = Call(self.entry, arguments, workspace, zeroed, launches)
        called = {*functions, "floor"}
        prelude = scalar_math.prelude(called) + lanes.HELPERS + whole_numbers.HELPERS
        chained = self.plan.chained
        prelude += wide.helpers(magnitudes(chained.program), chained.expressions)
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def _merger(self) -> str:
        return f"{self.entry}_merge"

    @property
    def _transposer(self) -> str:
        return f"{self.entry}_turn"

    @cached_property
    def _transposed(self) -> TransposedCopy | None:
        """The transposed copy of the matrix, if the kernel needs one."""
        return TransposedCopy(self.plan.chained) if self.plan.sizes.has_bytes else None

    def _merge_launch(self) -> list[Launch]:
        plan = self.plan
        if not plan.merges_later:
            return []
        slices = int(plan.sizes.tile_count(plan.values)) * plan.warpgroups
        rows = int(plan.sizes.rows(plan.values))
        return [
            Launch(
                (slices * plan.pairs, 1, 1),
                (GROUP, 1, 1),
                entry=self._merger,
                early=plan.begins_early,
                open_grid=open_grid(plan.chained, rows, plan.warpgroups * plan.pairs),
            )
        ]

    @property
    def _threads(self) -> int:
        return (self.plan.warpgroups + 1) * GROUP

    @cached_property
    def source(self) -> str:
        """The CUDA C++ of the entry, and of the kernels that transpose and merge, if needed."""
        plan = self.plan
        maps = [f"const __grid_constant__ TensorMap {name}_map" for name in plan.boxes]
        workspace = ["u8 *__restrict__ workspace"] * plan.has_workspace
        arrays = [plan.access.parameters(), *workspace]
        given = open_parameter(plan.chained)
        lines, copy = list[str](), list[str]()
        if transposed := self._transposed:
            copy = transposed.parameters[-1:]
            parameters = ", ".join(transposed.parameters)
            lines = function(self._transposer, THREADS, parameters, transposed.lines())
        bounds = f"{self._threads}, {plan.number('blocks_per_sm')}"
        lines += function(
            self.entry, bounds, ", ".join([*arrays, *copy, *maps, *given]), self._body()
        )
        if plan.merges_later:
            merging = Multiplying(plan).merging()
            if plan.begins_early:  # others write the workspace while it runs
                arrays = [plan.access.parameters(), "u8 *workspace"]
            lines += function(self._merger, GROUP, ", ".join([*arrays, *given]), merging)
        return "\n".join(lines) + "\n"

    def _body(self) -> list[str]:
        plan = self.plan
        up, down = self._moved()
        is_leader = f"threadIdx.x == {plan.warpgroups * GROUP}"
        loading = [*down, *CUDA.when(is_leader, Loading(plan).lines())]
        loading += [*READY, *ALL_READY] * plan.is_cluster
        return [
            f"constexpr int TW_KEYS = {plan.keys};",
            "const u32 shared = tw::shared_base();",
            "const i32 group = (i32)tw::warp_uniform(threadIdx.x / 128);",
            *(f"const u32 {n} = shared + {at};" for n, (at, _, _) in plan.barriers.items()),
            *self._start(),
            *CUDA.when(f"group == {plan.warpgroups}", loading, [*up, *Multiplying(plan).lines()]),
        ]

    def _moved(self) -> tuple[list[str], list[str]]:
        """Print how consumers get registers that the loading warpgroup gives up."""
        if self.plan.registers is None:
            return [], []
        up, down = self.plan.registers
        return [f"tw::registers_up<{up}>();"], [f"tw::registers_down<{down}>();"]

    def _start(self) -> list[str]:
        inits = [
            f"for (i32 i = 0; i < {count}; i++) tw::mbarrier_init({name} + 8 * i, {arrivals});"
            for name, (_, count, arrivals) in self.plan.barriers.items()
        ]
        inits += [f"tw::tma_prefetch(&{name}_map);" for name in self.plan.boxes]
        is_leader = f"threadIdx.x == {self.plan.warpgroups * GROUP}"
        return [
            *CUDA.when(is_leader, [*inits, "tw::fence_barrier_init();"]),
            *["tw::await_launches();"] * self.plan.sizes.has_bytes,
            "tw::sync_block();",
        ]
