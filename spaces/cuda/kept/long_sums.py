"""Sums along kept axes that are added up in blocks, so that their error does not grow.

A thread adds so many terms to an accumulator ``s[j]``; then ``tw_add_block``
(:mod:`spaces.cuda.block_sums`) adds that to ``before[j]``. Where many parts of other threads or
blocks are merged, it adds each of these.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.block_sums import BLOCK
from tilewright.spaces.cuda.kept.sizes import KeptSizes
from tilewright.spaces.cuda.kept.thread import Thread


@dataclass(frozen=True)
class LongSums:
    """The accumulators of a task that is reduced by ``thread``."""

    sizes: KeptSizes
    thread: Thread

    @property
    def others(self) -> int:
        """Parts of blocks that one thread merges."""
        return ceil_div(
            int(self.sizes.values["splits"]), int(self.sizes.values["reduction_threads"])
        )

    def declared(self) -> list[str]:
        """What the sums before are too great by, if any are long."""
        counts = self._terms, int(self.sizes.values["reduction_threads"]), self.others
        return [f"float excess[{len(self._outputs)}] = {{}};"] * any(map(self._is_long, counts))

    def in_blocks(self, taps: Sequence[str]) -> list[str]:
        """The lines of all taps, and what is needed before and behind to add them up in blocks."""
        if not self._is_long(self._terms):
            return list(taps)
        return [
            f"float before[{len(self._outputs)}] = {{}};",
            "int turn = 0;",
            *taps,
            *self._added(),
            *(f"s[{j}] = before[{j}];" for j in self._outputs),
        ]

    def turn_ends(self) -> list[str]:
        """The end of a turn of the loops that are not written out."""
        if not self._is_long(self._terms):
            return []
        turns = max(1, BLOCK // prod(loop.extent for loop in self.sizes.written_out))
        return [f"if (++turn % {turns} == 0) {{", *indented(self._added()), "}"]

    def merged(self, others: int, part: Callable[[int], str]) -> list[str]:
        """The lines that take one of so many ``others`` into each accumulator ``j``, of which it
        has the value ``part(j)``."""
        if self._is_long(others):
            return [f"tw_add_block(s[{j}], excess[{j}], {part(j)});" for j in self._outputs]
        return [self.thread.join(f"s[{j}]", part(j)) for j in self._outputs]

    def cleared(self, others: int) -> list[str]:
        """The lines before so many others are taken in."""
        return [f"excess[{j}] = 0.0f;" for j in self._outputs] if self._is_long(others) else []

    @property
    def _outputs(self) -> range:
        return range(int(self.sizes.outputs))

    @property
    def _terms(self) -> int:
        """What one thread reduces."""
        taps = prod(loop.extent for loop in self.thread.view.taps)
        return ceil_div(taps, int(self.sizes.parts))

    def _is_long(self, terms: int) -> bool:
        return self.thread.view.reducer == "sum" and terms > BLOCK

    def _added(self) -> list[str]:
        return [
            f"tw_add_block(before[{j}], excess[{j}], s[{j}]); s[{j}] = 0.0f;" for j in self._outputs
        ]
