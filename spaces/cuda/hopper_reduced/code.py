"""The CUDA C++ of a chain whose scores Hopper's product kernel multiplies.

The kernel is that of ``spaces.cuda.hopper.code``, except for the end of each tile; a second one
merges the states of all tiles (:mod:`spaces.cuda.hopper_reduced.merging`).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda import scalar_math, whole_numbers, wide
from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.chains import lanes
from tilewright.spaces.cuda.hopper.code import HopperCode
from tilewright.spaces.cuda.hopper.plan import HopperPlan
from tilewright.spaces.cuda.hopper_reduced.product import ReducedProduct
from tilewright.spaces.cuda.hopper_reduced.store import ReducedStore, SliceRows
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.workloads.workload import Workload


@dataclass(frozen=True)
class ReducedPlan(HopperPlan):
    """The plan of a :class:`~spaces.cuda.hopper_reduced.product.ReducedProduct`."""

    @property
    def reduced(self) -> ReducedProduct:
        """The product that is computed."""
        assert isinstance(self.product, ReducedProduct)
        return self.product

    @property
    def rows(self) -> SliceRows:
        """The rows of a warpgroup, a new object for each kernel."""
        return SliceRows(self.reduced.chained, self.slice_columns, self.number("chunk"))

    @cached_property
    def store(self) -> ReducedStore:
        """The end of a tile: its sums are reduced."""
        whole = super().store
        return ReducedStore(
            whole.finish, False, whole.row_blocks, whole.columns, 0, None, self.rows
        )


@dataclass(frozen=True)
class ReducedCode(HopperCode):
    """The kernel named ``entry`` that computes ``workload``."""

    plan: ReducedPlan
    workload: Workload

    def kernel(self, prelude: str = "") -> Kernel:
        """Return the kernel with its launches."""
        (launch,) = super().kernel(prelude).call.launches
        workload, merging = self.workload, self.plan.rows.merging("slice")
        given = arguments(workload.inputs, workload.outputs)
        launches = (launch, *self._merge_launch())
        size, zeroed = merging.workspace_bytes, merging.zeroed_bytes
        call = Call(self.entry, given, size, zeroed, launches)
        has_places = bool(merging.chain.placed)
        called = scalar_math.prelude(frozenset({*workload.functions, "floor"}))
        prelude = called + lanes.helpers(has_places) + whole_numbers.HELPERS
        chained = merging.chain.chained
        prelude += wide.helpers(magnitudes(chained.program), chained.expressions)
        return Kernel(Source("cuda", prelude, self.source + self._merger()), call)

    @property
    def parameters(self) -> str:
        """The parameters of the entry, in C."""
        maps = [f"const __grid_constant__ TensorMap {name}" for name in self.tensor_maps]
        return ", ".join([*self._arrays, *maps])

    @property
    def _arrays(self) -> list[str]:
        rows = self.plan.rows
        return [rows.access.parameters(), *["u8 *__restrict__ workspace"] * (rows.parts > 1)]

    def _merge_launch(self) -> list[Launch]:
        rows = self.plan.rows
        if rows.parts == 1:
            return []
        blocks = ceil_div(rows.chained.row_count, rows.merging_rows.rows)
        return [Launch((int(blocks), 1, 1), (GROUP, 1, 1), entry=f"{self.entry}_merge")]

    def _merger(self) -> str:
        """Return the second kernel, of a block for some rows; empty if a tile has all columns.

        Launch bounds say that one block per multiprocessor suffices: else the compiler spills
        registers to fit more.
        """
        rows = replace(self.plan.rows, count=1)
        if rows.parts == 1:
            return ""
        merging = rows.merging_rows
        merged, outputs = merging.merge(rows.inside), rows.outputs()
        body = [
            f"const int lane = threadIdx.x % {merging.lanes};",
            f"const int own = blockIdx.x * {merging.rows} + threadIdx.x / {merging.lanes};",
            *rows.begun(),
            *merging.parts(),
            *merged,
            *outputs,
        ]
        given = ", ".join(self._arrays)
        return "\n".join(function(f"{self.entry}_merge", f"{GROUP}, 1", given, body)) + "\n"
