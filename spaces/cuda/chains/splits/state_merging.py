"""The merge of parts of which only rows' states are left: lanes that share a row share its parts.

A row may have a hundred parts: a lane that merged all of them would wait for memory time after
time. Each of n lanes takes every n-th part, batch by batch; then they merge their states.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.chains.splits.leaving import SHARERS, TOGETHER
from tilewright.spaces.cuda.chains.splits.merging import PartMerging, held
from tilewright.spaces.kernels.text import CUDA

_AHEAD = 16
"""Parts whose states a lane loads at a time."""


@dataclass(frozen=True)
class StateMerging(PartMerging):
    """The merge of parts of threads that leave no sums."""

    @property
    def lanes(self) -> int:
        """Lanes that share a row's parts: no more than there are parts."""
        return min(self.sharers, 1 << (self.split - 1).bit_length())

    @property
    def sharers(self) -> int:
        """Neighbouring lanes that have the same row."""
        return SHARERS

    @property
    def _lane(self) -> str:
        """C text of a lane's number among those that share a row's parts."""
        return f"(i32)({self.crew.thread}) % {self.lanes}"

    def merge(self, inside: str) -> list[str]:
        """Print how the states of each ``lanes``-th part are merged, and then those of all lanes.

        All lanes take part in the latter.
        """
        masks = [1 << bit for bit in range(self.lanes.bit_length() - 1)]
        body = [
            *self.chain.no_states(),
            *CUDA.when(inside, self._batches()),
            *(line for mask in masks for line in self._across(mask)),
        ]
        return CUDA.loop("r", self.chain.rows, body, unroll=True)

    def _batches(self) -> list[str]:
        ahead = int(min(_AHEAD, ceil_div(self.split, self.lanes)))
        names, number = range(0, self.row_words, TOGETHER), f"first + n * {self.lanes}"
        loads = [self.room.loaded(TOGETHER, f"all{k}[n]", self.states_at(k)) for k in names]
        others = [f"const float (&held{k})[{TOGETHER}] = all{k}[n];" for k in names]
        others += [f"const float other{k} = {held(k)};" for k in self.left_states]
        part = f"const int part = tw_least({number}, {self.split - 1});"
        merged = CUDA.when(f"{number} < {self.split}", self.merged_states(others))
        body = [
            *(f"float all{k}[{ahead}][{TOGETHER}];" for k in names),
            *CUDA.loop("n", ahead, [part, self.mine("part"), *loads], unroll=True),
            *CUDA.loop("n", ahead, merged, unroll=True, brief=True),
        ]
        step = ahead * self.lanes
        return CUDA.loop("first", self.split, body, first=self._lane, step=step, unroll=1)

    def _across(self, mask: int) -> list[str]:
        """Print the merge with the states of the lane whose number differs in ``mask``."""
        others = self.row_values(lambda value: f"tw::shuffle_xor({value}, {mask})")
        lines = [f"const float other{k} = {other};" for k, other in enumerate(others)]
        return CUDA.block(*self.merged_states(lines))
