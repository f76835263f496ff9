"""The template of chains over the columns of a deep product, by ``mma.sync``.

A linear layer with its cross-entropy and routing by wide rows are such chains. Decisions are those
of :mod:`spaces.cuda.chained.template`, and ``depth_step``, the terms of a score that a stage has.
``query_storage`` says how rows are copied: again with each tile of keys, step by step in its
``stages``, or once, with all their terms in ``shared`` memory.
"""

from __future__ import annotations

from typing import ClassVar

from tilewright.spaces.cuda.chained.sizes import ChainedSizes
from tilewright.spaces.cuda.chained.template import TENSOR_CORES, CudaChained
from tilewright.spaces.cuda.chained_deep.block import DeepBlock
from tilewright.spaces.cuda.chained_deep.code import DeepCode
from tilewright.spaces.cuda.chained_deep.rules import deep_rules
from tilewright.spaces.cuda.chained_deep.sizes import SHARED, STAGES, DeepSizes
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.template import Decision, Rule

DEPTH_STEPS = (32, 64, 128, 256)
_WHOLE_ROWS = 3 * TENSOR_CORES * FRAGMENT
"""Rows and keys of the smallest whole tile: a slice for each tensor core, two stages of keys.

The stages have as many keys each as the slices have rows.
"""


class ChainedDeep(CudaChained):
    """The template of one pass over the keys for every block of rows, in steps of the depth."""

    name: ClassVar[str] = "chained_deep"
    version: ClassVar[int] = 5
    sizes: DeepSizes

    def why_unfit(self) -> str | None:
        """Return why the workload's sizes do not suit the template, in words; None if they do.

        Either a block has room for the depth as a whole, or rows are so long that no tile of them
        fits.
        """
        return self._why_whole() or super().why_unfit()

    def _code(self, schedule: Schedule, sizes: ChainedSizes, entry: str) -> DeepCode:
        assert isinstance(sizes, DeepSizes)
        return DeepCode(DeepBlock(sizes, schedule.values), entry)

    def _sizes(self, chained: Chained) -> DeepSizes:
        return DeepSizes(chained)

    def _rules(self) -> tuple[Rule, ...]:
        return deep_rules(self.sizes, self.cuda, self.decisions)

    def _decisions(self) -> tuple[Decision, ...]:
        own = {"query_storage": (STAGES, SHARED), "stages": (2, 3, 4, 5, 6)}
        found = [Decision(d.name, own.get(d.name, d.values)) for d in super()._decisions()]
        place = [d.name for d in found].index("stages")
        return (*found[:place], Decision("depth_step", DEPTH_STEPS), *found[place:])

    def _why_whole(self) -> str | None:
        depth, most = self.sizes.chained.depth.extent, self.cuda.shared_per_block
        whole = _WHOLE_ROWS * self.sizes.depth * self.sizes.score_bytes
        if whole > most:
            return None
        return f"{depth} terms of a score need no steps: whole tiles take {whole} bytes of {most}"
