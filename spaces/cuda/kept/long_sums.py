"""Sums along kept axes that are added up in blocks, so that their error does not grow.

A thread adds some terms to an accumulator ``s[j]``; then ``tw_add_block``
(:mod:`spaces.cuda.block_sums`) adds that to ``before[j]``. If many parts of other threads or blocks
are merged, it adds each of these.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from math import prod

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.block_sums import BLOCK, FEW
from tilewright.spaces.cuda.kept.sizes import KeptSizes
from tilewright.spaces.cuda.kept.thread import Thread
from tilewright.spaces.kernels.body import Body


@dataclass(frozen=True)
class LongSums:
    """The accumulators of a task that ``thread`` reduces."""

    sizes: KeptSizes
    thread: Thread

    @property
    def others(self) -> int:
        """Parts of blocks that one thread merges."""
        return ceil_div(self.sizes.split, self.sizes.share)

    def declare(self, body: Body) -> None:
        """Declare ``excess``, the amounts by which sums of blocks are too large, if any are
        long."""
        parts = self.sizes.share, self.others
        if self._is_long(self._terms) or any(map(self._are_many, parts)):
            body.let("float", "excess", "{}", count=len(self._outputs))

    @contextmanager
    def in_blocks(self, body: Body) -> Iterator[None]:
        """Add up all taps that are written inside in blocks, if these are long sums."""
        if not self._is_long(self._terms):
            yield
            return
        body.let("float", "before", "{}", count=len(self._outputs))
        body.let("int", "turn", 0)
        yield
        self._add(body)
        for j in self._outputs:
            body.assign(f"s[{j}]", f"before[{j}]")

    def end_turn(self, body: Body) -> None:
        """End a turn of the loops that are not unrolled."""
        if self._is_long(self._terms):
            turns = max(1, BLOCK // prod(loop.extent for loop in self.sizes.written_out))
            with body.when(f"++turn % {turns} == 0"):
                self._add(body)

    def merge(self, body: Body, others: int, part: Callable[[int], str]) -> None:
        """Add one of ``others`` parts to each accumulator ``j``; its value is ``part(j)``."""
        for j in self._outputs:
            if self._are_many(others):
                body.call("tw_add_block", f"s[{j}]", f"excess[{j}]", part(j))
            else:
                self.thread.join(body, f"s[{j}]", part(j))

    def clear(self, body: Body, others: int) -> None:
        """Prepare to add ``others`` parts."""
        if self._are_many(others):
            for j in self._outputs:
                body.assign(f"excess[{j}]", "0.0f")

    @property
    def _outputs(self) -> range:
        return range(self.sizes.outputs)

    @property
    def _terms(self) -> int:
        """Terms that one thread reduces."""
        taps = prod(loop.extent for loop in self.thread.view.taps)
        return ceil_div(taps, self.sizes.parts)

    def _is_long(self, terms: int) -> bool:
        return self.thread.view.reducer == "sum" and terms > BLOCK

    def _are_many(self, parts: int) -> bool:
        """Return true if ``parts`` parts are too many for a plain sum.

        Each may be as far off as a block may be.
        """
        return self.thread.view.reducer == "sum" and parts > FEW

    def _add(self, body: Body) -> None:
        for j in self._outputs:
            body.call("tw_add_block", f"before[{j}]", f"excess[{j}]", f"s[{j}]")
            body.assign(f"s[{j}]", "0.0f")
