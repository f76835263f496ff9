"""The CUDA C++ of a matrix product by ``mma.sync``, on tensor cores since sm_80.

A ring of stages in shared memory is filled by ``cp.async`` several steps ahead. Warps share the
block's tile as one task mapping says, outermost first:

    spatial(warps) * repeat(fragments) * repeat(2, 1) * spatial(8, 4) * repeat(1, 2)

whose last three factors are how an accumulator of 16 x 8 sums lies in a warp's registers.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import permuted
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cuda.blocks.code import BlockCode
from tilewright.spaces.cuda.blocks.copies.block_copy import BlockCopy
from tilewright.spaces.cuda.blocks.copies.gather_copy import copy_of
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.mma.accumulators import Accumulators
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, Fragments, multiply_add, swizzled_tile
from tilewright.spaces.cuda.mma.sizes import MmaSizes
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.workloads.array import Array

INSTRUCTIONS = {
    "float16": "mma_m16n8k16_f32_f16_f16",
    "bfloat16": "mma_m16n8k16_f32_bf16_bf16",
    "tfloat32": "mma_m16n8k8_f32_tf32_tf32",
    "int8": "mma_m16n8k32_s32_s8_s8",
    "float8_e4m3fn": "mma_m16n8k32_f32_e4m3_e4m3",
    "float8_e5m2": "mma_m16n8k32_f32_e5m2_e5m2",
}
"""The instruction for each dtype of A and B; all take 32 bytes of depth."""

PACKED = "mma_m16n8k16_f16_f16_f16"
"""The instruction for float16 with float16 sums."""


@dataclass(frozen=True)
class MmaCode(BlockCode):
    """The kernel of one schedule, whose warps load fragments from the ring and multiply them."""

    sizes: MmaSizes

    # -- extents -------------------------------------------------------------------------------

    @property
    def fragments(self) -> tuple[int, int]:
        """Fragments of 16 rows and of 16 columns in a warp's tile."""
        return self.number("tile_rows") // FRAGMENT, self.number("tile_columns") // FRAGMENT

    # -- memory --------------------------------------------------------------------------------

    def copy(self, name: str, operand: Array, width: int, deep: bool) -> BlockCopy:
        """Return the copy of an operand's tiles.

        Tiles keep their order in shared memory where ``ldmatrix`` can transpose them; elements of
        other sizes than 2 bytes are transposed on the way if they must.
        """
        tile = (width, self.depth) if deep else (self.depth, width)
        if deep or self.sizes.bytes == 2:
            shared = swizzled_tile(*tile, self.sizes.bytes)
        else:
            shared = permuted(swizzled_tile(width, self.depth, self.sizes.bytes), 1, 0)
        return copy_of(self.product, operand, name, tile, self.threads, shared)

    @cached_property
    def operands(self) -> tuple[Fragments, Fragments]:
        """The fragments of both operands."""
        parts = (
            ("a", self.left, self.product.left_runs_deep),
            ("b", self.right, self.product.right_runs_deep),
        )
        left, right = (
            Fragments(
                name,
                rank,
                self.warps,
                self.fragments[rank],
                copy.shared if deep or self.sizes.bytes == 2 else permuted(copy.shared, 1, 0),
                deep or self.sizes.bytes != 2,
                self.sizes.bytes,
            )
            for rank, (name, copy, deep) in enumerate(parts)
        )
        return left, right

    # -- text ----------------------------------------------------------------------------------

    @property
    def sums_in_thread(self) -> int:
        """Sums of a thread, four of each accumulator."""
        return self.accumulated.count * 4

    @property
    def declare_sums(self) -> str:
        """The C declaration of one array for each accumulator."""
        return f"{self.kind} sums[{self.accumulated.count}][4] = {{}};"

    @property
    def sum(self) -> str:
        """C text of sum number ``i`` of a thread."""
        return "sums[i / 4][i % 4]"

    def main_loop(self) -> list[str]:
        """Print the main loop; copies run ``stages - 1`` steps ahead.

        A stage is filled again as soon as all threads are known to have left it.
        """
        ahead = self.stages - 1
        pending = [copy for copy in (self.left, self.right) if not copy.can_be_asynchronous]
        first = f"const u32 next = shared + step * {self.stage_bytes};"
        filled, commit = [*self._fetch(), *self._settle()], "tw::cp_async_commit();"
        begun = [*CUDA.when("step < steps", [first, *filled]), commit]
        body = [
            f"tw::cp_async_wait<{ahead - 1}>();",
            "tw::sync_block();",
            f"const u32 stage = shared + step % {self.stages} * {self.stage_bytes};",
            f"const u32 next = shared + (step + {ahead}) % {self.stages} * {self.stage_bytes};",
            f"const bool more = step + {ahead} < steps;",
            *CUDA.when("more", self._fetch()),
            commit,
            *self._multiply(),
            *self._settle_if_more(),
        ]
        return [
            *(line for copy in pending for line in copy.declare()),
            *self._declare_packed(),
            *CUDA.loop("step", ahead, begun, unroll=True),
            *CUDA.loop("step", "steps", body),
            *self._unpack(),
        ]

    def _fetch(self) -> list[str]:
        """Print how copies of the next tiles to the stage at ``next`` start, and corners go on."""
        lines = []
        for copy, corner, stage in self._moves():
            ends = self.left_ends if copy is self.left else None
            if copy.can_be_asynchronous:
                lines += copy.copy(stage, *corner, ends)
            else:
                lines += copy.load(*corner, ends)
        return [*lines, *self.advance()]

    def _settle(self) -> list[str]:
        """Print how tiles that came through registers are stored."""
        return [
            line
            for copy, _, stage in self._moves()
            if not copy.can_be_asynchronous
            for line in copy.store(stage)
        ]

    def _settle_if_more(self) -> list[str]:
        lines = self._settle()
        return CUDA.when("more", lines) if lines else []

    def _moves(self) -> tuple[tuple[BlockCopy, tuple[str, str], str], ...]:
        """Return each operand's copy, corner of the tile, and address in the stage at ``next``."""
        return (
            (self.left, self.left_corner, "next"),
            (self.right, self.right_corner, f"next + {self.left_bytes}"),
        )

    def _multiply(self) -> list[str]:
        """Print all products of a stage."""
        rows, columns = self.accumulated.shape
        left, right = self.operands

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            return [
                f"u32 a[{left.count}][4], b[{right.count}][4];",
                *left.load("stage", k),
                *right.load(f"stage + {self.left_bytes}", k),
                *self._rounded("a", left.count),
                *self._rounded("b", right.count),
                *unrolled(repeat(rows, columns), 0, accumulate, "t"),
            ]

        def accumulate(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            total = f"{'packed' if self._is_packed else 'sums'}[{(i * columns + j).text}]"
            return multiply_add(self._instruction, total, ("a", "b"), indices)

        return unrolled(repeat(self.depth // left.terms), 0, step, "k")

    @property
    def _instruction(self) -> str:
        return PACKED if self._is_packed else INSTRUCTIONS[self.product.left.dtype]

    @property
    def _is_packed(self) -> bool:
        """True if sums are kept in float16, two in a register, until they are finished."""
        return self.product.whole.accumulator == "float16"

    def _declare_packed(self) -> list[str]:
        return [f"u32 packed[{self.accumulated.count}][2] = {{}};"] if self._is_packed else []

    def _unpack(self) -> list[str]:
        if not self._is_packed:
            return []

        def body(indices: tuple[Index, ...]) -> list[str]:
            i, half = indices
            low, high = (f"sums[{i.text}][{(half * 2 + e).text}]" for e in (0, 1))
            return [f"tw::unpack2<f16>(packed[{i.text}][{half.text}], {low}, {high});"]

        return unrolled(repeat(self.accumulated.count, 2), 0, body, "u")

    def _rounded(self, name: str, count: int) -> list[str]:
        """Print how fragments are rounded to tf32, whose instructions would truncate them."""
        if self.product.left.dtype != "tfloat32":
            return []

        def body(indices: tuple[Index, ...]) -> list[str]:
            place = f"{name}[{indices[0].text}][{indices[1].text}]"
            return [f"{place} = tw::to_tf32(tw::bits_float({place}));"]

        return unrolled(repeat(count, 4), 0, body, f"{name}_")

    # -- output --------------------------------------------------------------------------------

    @cached_property
    def accumulated(self) -> Accumulators:
        """The sums of the block, and their store."""
        through_shared = self.values["store_path"] == "shared"
        return Accumulators(self.product, self.warps, self.fragments, self.kind, through_shared)

    def finish(self) -> list[str]:
        """Print how sums are finished and stored; see :class:`Accumulators`."""
        return self.accumulated.finish()
