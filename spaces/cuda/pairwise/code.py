"""A pairwise kernel by ``mma.sync``: numbers of rows and keys, then a kernel for each pass."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cuda import scalar_math, whole_numbers, wide
from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.chains import lanes
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.pairwise.block import Block
from tilewright.spaces.cuda.pairwise.scalars import WARPS, Scalars
from tilewright.spaces.cuda.pairwise.visiting import Visiting
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.pairwise.view import Pairwise
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.language.magnitude import magnitudes


@dataclass(frozen=True)
class PairwiseCode:
    """The kernel named ``entry`` whose passes have these ``blocks``."""

    pairwise: Pairwise
    blocks: Sequence[Block]
    entry: str

    def kernel(self, arguments: tuple[Argument, ...], functions: frozenset[str]) -> Kernel:
        """Return the kernel with all its launches, for a program that calls ``functions``."""
        prelude = scalar_math.prelude({*functions, "floor"}) + lanes.helpers(has_places=False)
        prelude += whole_numbers.HELPERS
        prelude += wide.helpers(magnitudes(self.pairwise.program), self.pairwise.expressions)
        call = Call(self.entry, arguments, self.scalars.bytes, 0, tuple(self._launches()))
        return Kernel(Source("cuda", prelude, self.source), call)

    @cached_property
    def scalars(self) -> Scalars:
        """The numbers of rows and keys."""
        return Scalars(self.pairwise)

    def _name(self, block: Block) -> str:
        return self.entry if block is self.blocks[-1] else f"{self.entry}_{block.of.name}"

    def _launches(self) -> list[Launch]:
        first = []
        if self.pairwise.scalars:
            threads = (WARPS * WARP, 1, 1)
            first = [Launch((self.scalars.blocks, 1, 1), threads, entry=f"{self.entry}_scalars")]
        return [*first, *map(self._launch, self.blocks)]

    def _launch(self, block: Block) -> Launch:
        sizes, values = block.sizes, block.values
        return Launch(
            (int(sizes.blocks(values)), 1, 1),
            (int(sizes.threads(values)), 1, 1),
            shared_bytes=int(sizes.shared_bytes(values)),
            entry=self._name(block),
        )

    @property
    def source(self) -> str:
        """The CUDA C++ of all functions."""
        lines = []
        if self.pairwise.scalars:
            bounds = f"{WARPS * WARP}"
            lines += self._function(f"{self.entry}_scalars", bounds, self.scalars.body())
        for block in self.blocks:
            bounds = f"{block.warps * WARP}, {int(block.values['blocks_per_sm'])}"
            lines += self._function(self._name(block), bounds, Visiting(block).body())
        return "\n".join(lines) + "\n"

    def _function(self, name: str, bounds: str, body: Sequence[str]) -> list[str]:
        parameters = Access(self.pairwise, {}).parameters()
        parameters += ", u8 *__restrict__ workspace" * bool(self.pairwise.scalars)
        lane = f"const int lane = (int)threadIdx.x % {WARP};"
        return function(name, bounds, parameters, [lane, *body])
