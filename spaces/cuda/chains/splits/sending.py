"""Parts of keys that the blocks of a cluster send each other, and merge (reduce-scatter).

Each block merges a share of the columns, of all parts. The words it needs of each part come by
asynchronous stores, which complete a barrier of the block that they go to: no fence follows them,
nobody waits for a load from another block, and a block ends when it has merged its own share.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.chains.ends import End
from tilewright.spaces.cuda.chains.splits.leaving import SHARERS
from tilewright.spaces.cuda.chains.splits.merging import PartMerging
from tilewright.spaces.cuda.chains.splits.splitting import receivers
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.kernels.text import CUDA

READY = ("tw::sync_warp();", "tw::cluster_arrive_relaxed();")
"""Lines that all threads of all blocks run once parts may be sent to their block.

The block then no longer reads the memory where parts arrive, and its barriers are initialised.
Threads that send nothing run them, too.
"""
ALL_READY = ("tw::sync_warp();", "tw::cluster_wait();")
"""Lines that all threads run before they send, or end."""
VECTOR = 4
"""Sums that are sent at a time, of two columns in two rows."""


@dataclass(frozen=True)
class SentParts:
    """The parts that each sharer of a tile sends to the sharers that merge.

    ``merged`` merges one sharer's columns, which are ``pairs`` accumulators of each slice, of
    ``every`` one that there is; ``sums`` are functions from an index to the C text of a thread's
    sum for each weighing. ``blocks`` blocks have one sharer each in turn; parts that the sharers of
    a block receive lie one behind the other from ``room`` on in shared memory, and their barriers
    from ``barrier`` on. In C, ``sharer`` is the number of this sharer, ``part`` that of its part of
    the keys, ``rows`` how many of its rows are in the product, and ``inside`` whether row ``r`` of
    a thread is.
    """

    merged: PartMerging
    sums: Sequence[Callable[[str], str]]
    pairs: int
    every: int
    blocks: int
    room: str
    barrier: str
    sharer: str
    part: str
    rows: str
    inside: str

    @property
    def receivers(self) -> int:
        """Sharers that merge: the first ones, as far as there are columns."""
        return receivers(self.every, self.merged.split)

    @property
    def receives(self) -> str:
        """The C condition that this sharer merges; empty if all do."""
        if self.receivers == self.merged.split:
            return ""
        return f"{self.sharer} < {self.receivers}"

    def lines(self) -> list[str]:
        """Print how this part is sent, and the own columns of all parts are merged.

        Every block must be ready.
        """
        crew = self.merged.crew
        expect = f"tw::mbarrier_arrive_expect({self._own_barrier}, {self._expected});"
        leads = f"({crew.thread}) == 0"
        receives = f"{self.receives} && {leads}" if self.receives else leads
        merged = [
            *self.merged.parts(),
            f"tw::mbarrier_wait_cluster({self._own_barrier}, 0);",
            *self.merged.merge(self.inside),
        ]
        if self.receives:
            merged = CUDA.when(self.receives, merged)
        return [
            f"const int sent_rows = {self.rows};",
            f"if ({receives}) {expect}",
            *self._addresses(),
            *self._send(),
            *merged,
        ]

    @property
    def _own_barrier(self) -> str:
        return self.barrier + self._of_sharer(self.sharer, 8)

    def _of_sharer(self, number: str, size: int) -> str:
        """Return C text that adds the offset of a sharer in its block."""
        return f" + {number} / {self.blocks} * {size}" if self.merged.split > self.blocks else ""

    @property
    def _expected(self) -> str:
        """C text of the bytes that a receiver gets."""
        merged, rows = self.merged, "sent_rows"
        vectors = self.pairs * len(self.sums)
        half = FRAGMENT // 2  # rows of which a vector has one each
        of_row, of_vectors = 4 * merged.row_words, vectors * VECTOR * 4 * SHARERS
        pairs = f"({rows} / {FRAGMENT} * {half} + tw_least({rows} % {FRAGMENT}, {half}))"
        return f"{merged.split} * ({rows} * {of_row} + {pairs} * {of_vectors})"

    def _addresses(self) -> list[str]:
        """Print the addresses of this part, and of the barrier, in each receiver's memory."""
        merged, count = self.merged, self.receivers
        room = self.room + self._of_sharer("q", merged.part_bytes)
        at = f"{room} + {self.part} * {merged.own_bytes} + {merged.crew.thread} * 4"
        barrier = self.barrier + self._of_sharer("q", 8)
        mapped = [
            f"to[q] = tw::map_shared({at}, q % {self.blocks});",
            f"done[q] = tw::map_shared({barrier}, q % {self.blocks});",
        ]
        return [
            f"u32 to[{count}], done[{count}];",
            *CUDA.loop("q", count, mapped, unroll=True),
        ]

    def _send(self) -> list[str]:
        """Print how states are sent, by one of the lanes that share a row, and then sums.

        Receivers follow each other in turn, so that none is sent everything at once.
        """
        merged, thread = self.merged, self.merged.crew.thread
        states = merged.states_of_row()
        stores = [f"tw::store_async_x4({merged.states_at(k)}, states{k}, done[q]);" for k in states]
        sent = CUDA.when(f"({thread}) % {SHARERS} == q % {SHARERS}", stores)
        every = merged.each_row([*states.values(), *self._each_receiver(sent)], self.inside)
        return [*every, *(self._send_sums() if self.sums else [])]

    def _send_sums(self) -> list[str]:
        """Print how the sums of rows ``r`` and ``r + 1`` are sent, two rows at a time."""
        lines = [
            f"const int i = (r / 2 * {self.pairs} + n) * {VECTOR};",
            f"const int from = (r / 2 * {self.every} + q * {self.pairs} + n) * {VECTOR};",
        ]
        for n, text in enumerate(self.sums):
            four = ", ".join(text(f"(from + {e})") for e in range(VECTOR))
            lines.append(f"const float four{n}[{VECTOR}] = {{{four}}};")
            lines.append(f"tw::store_async_x4({self.merged.sums_at(n)}, four{n}, done[q]);")
        sums = CUDA.loop("n", self.pairs, self._each_receiver(lines), unroll=True)
        return self.merged.each_row(sums, self.inside, step=2)

    def _each_receiver(self, body: Sequence[str]) -> list[str]:
        inner = ["const u32 mine = to[q];", *body]
        return CUDA.loop("q", self.receivers, inner, unroll=True)


def rows_inside(first: str, every: End, rows: int, of: int) -> str:
    """Return C text of how many of ``rows`` rows, from ``first`` on, are rows of a product.

    The product has ``every`` row and is cut into tiles of ``of`` rows.
    """
    if every.is_whole(of):
        return str(rows)
    return f"tw_least(tw_most({every.count} - {first}, 0), {rows})"
