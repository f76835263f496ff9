"""The main loop of a consumer warpgroup: wgmma on each stage of a tile, and the stage's release."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.hopper.plan import HopperPlan
from tilewright.spaces.cuda.hopper.tile import BLOCK, STEP_BYTES
from tilewright.spaces.kernels.text import CUDA

ELEMENTS = {
    "float16": "f16",
    "bfloat16": "bf16",
    "tfloat32": "tf32",
    "float8_e4m3fn": "e4m3",
    "float8_e5m2": "e5m2",
}
"""wgmma's names of the dtypes that are multiplied here."""


@dataclass(frozen=True)
class MainLoop:
    """The loop that sums up all steps of a tile in ``sums[block][register]``.

    Its lines read ``steps`` and the ring (``shared``, ``full``, ``empty``, ``stage``, ``phase``),
    the warpgroup's number ``group`` and the thread's number ``lane`` in its warp. Only the first
    ``columns`` of a trimmed tile along n are multiplied; 0 stands for all.
    """

    plan: HopperPlan
    columns: int = 0

    def lines(self, last: Sequence[str]) -> list[str]:
        """Print the loop; the lines ``last`` come once all products are issued."""
        plan = self.plan
        shape = f"[{plan.row_blocks}][{plan.block_sums}]"
        return [
            f"float sums{shape} = {{}}, fresh{shape};" if plan.promotion else f"float sums{shape};",
            *(self._by_parts(last) if plan.trimmed else self._loop(last)),
            *_settle("sums", plan.row_blocks),
        ]

    def _loop(self, last: Sequence[str]) -> list[str]:
        return self._ahead(last) if self.plan.number("in_flight") else self._one_by_one(last)

    def _by_parts(self, last: Sequence[str]) -> list[str]:
        """Print one loop for each number of parts that a trimmed tile may have."""
        trimmed = self.plan.trimmed
        assert trimmed is not None
        lines, most = ["switch (parts) {"], trimmed.extent // trimmed.part
        for parts in range(1, most + 1):
            lines += [
                "default: {" if parts == most else f"case {parts}: {{",
                *indented(replace(self, columns=parts * trimmed.part)._loop(last)),
                *("  break;", "}"),
            ]
        return [*lines, "}"]

    def idle(self) -> list[str]:
        """Print the loop of a warpgroup without rows: it only releases the stages as they fill."""
        step = [
            "tw::mbarrier_wait(full + 8 * stage, phase);",
            # else a lane could miss a phase, its warp having released the stage already
            "tw::sync_warp();",
            *self._release("stage"),
            self.plan.next_stage,
        ]
        return CUDA.loop("step", "steps", step)

    def _one_by_one(self, last: Sequence[str]) -> list[str]:
        """Print the loop in which each step waits for its own products."""
        step = [
            *self._multiply(),
            "tw::wgmma_wait<0>();",
            *self._release("stage"),
            *(self._promote() if self.plan.promotion else []),
            self.plan.next_stage,
        ]
        return [*CUDA.loop("step", "steps", step), *last]

    def _ahead(self, last: Sequence[str]) -> list[str]:
        """Print the loop in which products of a step may still run when the next step starts.

        The last step stands behind the loop: where the wait for all products stood there alone,
        CUDA 13.0's compiler read sums ahead of it.
        """
        plan = self.plan
        before = f"(stage == 0 ? {plan.stages - 1} : stage - 1)"
        release = CUDA.when("step > 0", self._release(before))
        step = [*self._multiply(), "tw::wgmma_wait<1>();", *release, plan.next_stage]
        last_step = [
            "const int step = steps - 1;",
            *self._multiply(),
            *last,
            "tw::wgmma_wait<0>();",
            *release,
            *self._release("stage"),
            plan.next_stage,
        ]
        return [*CUDA.loop("step", "steps - 1", step), *CUDA.block(*last_step)]

    def _multiply(self) -> list[str]:
        """Print how the products of a step are issued, once its stage is full."""
        plan = self.plan
        own = "" if plan.takes_turns else f" + group * {plan.row_blocks * plan.m.block_bytes}"
        return [
            "tw::mbarrier_wait(full + 8 * stage, phase);",
            f"const u32 at = shared + stage * {plan.stage_bytes};",
            f"const u64 m_tile = {plan.m.descriptor('at' + own)};",
            f"const u64 n_tile = {plan.n.descriptor(f'at + {plan.m.bytes}')};",
            "tw::wgmma_fence();",
            *self._products(),
            "tw::wgmma_commit();",
        ]

    def _products(self) -> list[str]:
        """Print all wgmma of a step. Descriptors count in units of 16 bytes."""
        plan = self.plan
        sums, since = "sums", "step"
        if plan.promotion:
            sums, since = "fresh", f"step % {plan.promotion}"
        name = self._instruction

        def body(indices: tuple[Index, ...]) -> list[str]:
            part, block = indices
            m = plan.m.part_at(part) // 16 + block * (plan.m.block_bytes // 16)
            n = plan.n.part_at(part) // 16
            into = f"{sums}[{block.text}]"
            if self.columns:
                into = f"reinterpret_cast<float (&)[{self.columns // 2}]>({into})"
            return [
                f"tw::{name}({into}, {(index('m_tile') + m).text}, "
                f"{(index('n_tile') + n).text}, ({since} | {part}) != 0);"
            ]

        parts = plan.m.depth_bytes // STEP_BYTES
        return unrolled(repeat(parts, plan.row_blocks), 0, body, "k")

    @property
    def _instruction(self) -> str:
        plan = self.plan
        kind, size = ELEMENTS[plan.m.operand.dtype], plan.m.operand.element.bytes
        majors = "".join("n" if tile.runs_deep else "t" for tile in (plan.m, plan.n))
        shape = f"m{BLOCK}n{self.columns or plan.tile[1]}k{STEP_BYTES // size}"
        return f"wgmma_{shape}_f32_{kind}_{kind}_ss" + (f"_{majors}" if size == 2 else "")

    def _promote(self) -> list[str]:
        """Print the addition of ``fresh``, the products since the last promotion, to the sums."""
        plan, every = self.plan, self.plan.promotion

        def body(indices: tuple[Index, ...]) -> list[str]:
            place = "".join(f"[{i.text}]" for i in indices)
            return [f"sums{place} += fresh{place};"]

        all_sums = repeat(plan.row_blocks, plan.block_sums // 8) * repeat(1, 8)
        return [
            f"if (step % {every} == {every - 1} || step + 1 == steps) {{",
            *indented(_settle("fresh", plan.row_blocks)),
            *indented(unrolled(all_sums, 0, body, "q")),
            "}",
        ]

    def _release(self, stage: str) -> list[str]:
        """Print how a stage is released to the blocks that load into it.

        Each warp arrives by itself, since waiting for wgmma tells a warp of its own part only (PTX
        ISA, wgmma.wait_group).
        """
        blocks = self.plan.cluster_tiles
        if blocks == 1:
            return [f"if (lane == 0) tw::mbarrier_arrive(empty + 8 * {stage});"]
        return [
            f"if (lane < {blocks})",
            f"  tw::mbarrier_report_remote(tw::map_shared(empty + 8 * {stage}, lane));",
        ]


def _settle(name: str, blocks: int) -> list[str]:
    return [f"tw::settle({name}[{block}]);" for block in range(blocks)]
