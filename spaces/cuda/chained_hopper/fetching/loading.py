"""The code of the producer thread: it loads rows for each warpgroup, and tiles of keys for all."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import SLICE, row_place
from tilewright.spaces.cuda.chained_hopper.plan import ChainedPlan
from tilewright.spaces.cuda.chained_hopper.walk import Walk


@dataclass(frozen=True)
class Loading:
    """The producer thread of a kernel that follows ``plan``."""

    plan: ChainedPlan

    def lines(self) -> list[str]:
        """Print its code, for all tiles of rows of the block."""
        plan = self.plan
        some = "if (end_tile > first_tile) " if plan.split > 1 else ""
        body = [
            *plan.key_tiles(),
            *self._of_keys("keys", plan.keys_at, plan.key_bytes),
            *self._of_keys("values", plan.values_at, plan.value_bytes),
            *self._of_rows(),
            "load_rows(0);",
            f"{some}load_keys(end_tile - 1, stage, phase);",
            *(f"load_rows({group});" for group in range(1, plan.warpgroups)),
            "#pragma unroll 1",
            "for (i32 j = end_tile - 1; j >= first_tile; j--) {",
            "  u32 next = stage + 1, after = phase;",
            f"  if (next == {plan.stages}) {{ next = 0; after ^= 1; }}",
            *indented(self._step()),
            "  stage = next;",
            "  phase = after;",
            "}",
            plan.next_buffer,
        ]
        start = "u32 stage = 0, phase = 1, buffer = 0, rows_phase = 1;"
        return [start, *Walk(plan).loading(body)]

    def _step(self) -> list[str]:
        """Print the loads of a step, in the order in which they are needed."""
        keys = "if (j > first_tile) load_keys(j - 1, next, after);"
        values = "load_values(j, stage, phase);"
        return [keys, values] if self.plan.values["overlap"] else [values, keys]

    def _of_keys(self, name: str, at: int, size: int) -> list[str]:
        plan = self.plan
        to, barrier = f"shared + {at} + stage * {size}", f"{name}_full + 8 * stage"
        first = f"j * {plan.keys}"
        sizes = plan.sizes
        lies = sizes.has_bytes if name == "values" else sizes.lies_along_keys
        place = [first, "0"] if lies else ["0", first]
        return [
            f"const auto load_{name} = [&](i32 j, u32 stage, u32 phase) {{",
            f"  tw::mbarrier_wait({name}_empty + 8 * stage, phase);",
            f"  tw::mbarrier_arrive_expect({barrier}, {size});",
            *indented(plan.boxes[name].load(to, name, barrier, place, plan.access.names)),
            "};",
        ]

    def _of_rows(self) -> list[str]:
        plan, rows = self.plan, self.plan.boxes["rows"]
        barrier, to = "rows_full + 8 * at", f"shared + at * {plan.region_bytes}"
        place = row_place(plan.chained, f"(row0 + group * {SLICE})")
        return [
            "const auto load_rows = [&](i32 group) {",
            f"  const u32 at = buffer * {plan.warpgroups} + group;",
            "  tw::mbarrier_wait(rows_empty + 8 * at, rows_phase);",
            f"  tw::mbarrier_arrive_expect({barrier}, {rows.bytes});",
            *indented(rows.load(to, "rows", barrier, place, plan.access.names)),
            "};",
        ]
