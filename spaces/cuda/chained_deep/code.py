"""The CUDA C++ of a deep chained kernel by ``mma.sync``: scores grow step by step of their depth.

A block has rows as any chained one has. Its ring gets one step of the depth of a tile of keys at a
time, with the same step of the rows if there is no room for them to stay: scores stay in registers
until all steps have passed, then chain and sums follow. The ring runs on from tile to tile, so that
the next tile's steps are being copied while the chain is computed. As task mappings:

    spatial(products, row tiles, slices of the width) * repeat(tiles of keys, steps of the depth)
        * spatial(warps) * repeat(slices) * (the fragments of a warp)
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.chained.code import ChainedCode
from tilewright.spaces.cuda.chained.multiplying import Multiplying
from tilewright.spaces.cuda.chained_deep.block import DeepBlock
from tilewright.spaces.cuda.chained_deep.operands import NEXT_DEPTH, STEP, DeepOperands
from tilewright.spaces.kernels.text import CUDA


@dataclass(frozen=True)
class DeepCode(ChainedCode):
    """The kernel named ``entry`` whose blocks follow ``block``."""

    block: DeepBlock

    @cached_property
    def operands(self) -> DeepOperands:
        """The operands in shared memory."""
        return DeepOperands(self.block)

    def loop(self) -> list[str]:
        """Print the loop over all tiles of keys and all steps of each, some steps behind copies."""
        keys, stages, size = self.block.keys, self.block.number("stages"), self.block.stage_bytes
        ahead, multiplying = stages - 1, Multiplying(self.block, self.operands)
        sees = f"tile < own_last && tile + {keys} > own_first"
        stage = f"const u32 stage = {self.ring} + step % {stages} * {size};"
        commit = "tw::cp_async_commit();"
        scores = [
            f"tw::cp_async_wait<{ahead - 1}>();",
            self.meeting,
            *self._copied(f"(step + {ahead}) % {stages} * {size}"),
            *self._matrices(),
            commit,
            *CUDA.when(sees, [stage, *multiplying.scores()]),
        ]
        body = [
            multiplying.no_scores(),
            "#pragma unroll 1",
            f"for (int {STEP} = 0; {STEP} < {self.block.steps}; {STEP}++, step++) {{",
            *indented(scores),
            "}",
            *CUDA.when(sees, [*self._ring_of_matrices(), *multiplying.weighed()]),
        ]
        return [
            f"int begin_key = (int)first_key / {keys} * {keys};",
            *self.own_part(),
            f"int next_tile = begin_key, {NEXT_DEPTH} = 0;",
            *CUDA.loop("step", ahead, [*self._copied(f"step * {size}"), commit], unroll=True),
            *self.rows_are_there(ahead),
            "int step = 0;",
            *CUDA.loop("tile", "last_key", body, first="begin_key", step=keys),
        ]

    def _copied(self, stage: str) -> list[str]:
        """Print how copies of the next step start, if there is one, and counters go on."""
        copies = [f"const u32 to = {self.ring} + {stage};", *self.operands.load_step("to")]
        depth, end = self.block.depth_step, self.block.steps * self.block.depth_step
        wrapped = [f"{NEXT_DEPTH} = 0;", f"next_tile += {self.block.keys};"]
        return [
            *CUDA.when("next_tile < last_key", copies),
            f"{NEXT_DEPTH} += {depth};",
            *CUDA.when(f"{NEXT_DEPTH} == {end}", wrapped),
        ]

    def _matrices(self) -> list[str]:
        """Print how copies of matrices start with the first step: no thread reads the last tile's
        then."""
        copies = self.operands.load_matrices("tile", self.ring)
        return CUDA.when(f"{STEP} == 0", copies) if copies else []

    def _ring_of_matrices(self) -> list[str]:
        return [f"const u32 stage = {self.ring};"] * bool(self.block.chained.weighings)
