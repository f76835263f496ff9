"""Two ways in which blocks that share the depth of a Hopper tile (split-K) add up their sums.

Through memory, each warpgroup adds its sums to a workspace by atomics and takes a ticket; the one
with the last ticket reads the whole sums, leaves zeros behind and goes on. In a cluster, each block
sends every other one a slice of its sums and finishes a slice itself (reduce-scatter). In both,
sums keep the layout of registers, those of neighbouring threads side by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.algebra.layout import Layout, row_major
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cuda.blocks.last_to_come import LastToCome
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.warpgroups import GROUP
from tilewright.spaces.kernels.text import CUDA

WAYS = ("add", "cluster")
"""``add``: atomics in global memory. ``cluster``: distributed shared memory."""
VECTOR = 4
"""Sums that a thread sends at a time."""
_ALIGNMENT = 256


@dataclass(frozen=True)
class SharedDepth:
    """The exchange through memory between ``sharers`` clusters that share each of ``tiles`` tiles.

    The sums of a tile lie in ``members`` warpgroups, as ``row_blocks`` blocks of ``block_sums`` in
    each thread.
    """

    sharers: int
    tiles: int
    members: int
    row_blocks: int
    block_sums: int

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the workspace: tickets, then sums. All of it is zero before and after."""
        return self._ticket_bytes + 4 * self._layout.size if self.sharers > 1 else 0

    def lines(self, tile: str, member: str, slot: str, body: list[str]) -> list[str]:
        """Print how sums are added up, and ``body`` runs in the warpgroup that has them all.

        The whole sums are then in ``sums[block][register]``. ``tile`` and ``member`` are C
        expressions; ``slot`` is the address of a word of shared memory of the warpgroup's own.
        Lines read ``thread`` and ``group`` like those of the store.
        """
        if self.sharers == 1:
            return body
        meet = ("tw::sync_named", "1 + group", f"{GROUP}")
        last = LastToCome("ticket", slot, "thread == 0", meet)
        taken = [*self._each("r", _take), *CUDA.written(last.reset)]
        merged = ["tw::fence_global();", *taken, *body]
        return [
            f"const int member = (int)({tile}) * {self.members} + {member};",
            "u32 *const ticket = (u32 *)workspace + member;",
            f"float *const whole = (float *)(workspace + {self._ticket_bytes});",
            *self._each("d", lambda at, mine: [f"tw::atomic_add({at}, {mine});"]),
            # every thread's additions come before the ticket, which one thread takes for all
            *CUDA.written(last.publish, last.take),
            *CUDA.when(f"{last.number} == {self.sharers - 1}", merged),
        ]

    def _each(self, prefix: str, line: Callable[[str, str], list[str]]) -> list[str]:
        """Print ``line(place in the workspace, sum)`` for each sum of a thread."""

        def body(indices: tuple[Index, ...]) -> list[str]:
            block, register = indices
            place = self._layout.index([index("member"), block, register, index("thread", GROUP)])
            return line(f"whole + {place.text}", f"sums[{block.text}][{register.text}]")

        return unrolled(
            repeat(self.row_blocks, self.block_sums // 8) * repeat(1, 8), 0, body, prefix
        )

    @property
    def _layout(self) -> Layout:
        return row_major(self.tiles * self.members, self.row_blocks, self.block_sums, GROUP)

    @property
    def _ticket_bytes(self) -> int:
        return int(round_up(4 * self.tiles * self.members, _ALIGNMENT))


def _take(at: str, mine: str) -> list[str]:
    return [f"{mine} = tw::load_global({at});", f"tw::store_global({at}, 0.0f);"]


@dataclass(frozen=True)
class ClusterDepth:
    """The exchange in a cluster, whose ``sharers`` blocks share the depth of a tile by rank.

    Each block ends up with the whole sums of a slice of the columns (reduce-scatter), as
    ``members`` warpgroups hold them in ``row_blocks`` blocks of ``block_sums`` in each thread. Sums
    travel by asynchronous stores, which complete a barrier of the block they go to: it waits for
    the last of them and for nothing else.
    """

    sharers: int
    members: int
    row_blocks: int
    block_sums: int

    @property
    def bytes(self) -> int:
        """Bytes of shared memory for what the other blocks send."""
        return 4 * self._layout.size if self.sharers > 1 else 0

    def start_lines(self, barrier: str) -> list[str]:
        """Print how one thread initialises the barrier, ahead of ``fence_barrier_init``.

        ``barrier`` is an address.
        """
        return [f"tw::mbarrier_init({barrier}, 1);"] if self.sharers > 1 else []

    def expect_lines(self, barrier: str) -> list[str]:
        """Print how the same thread says, after the fence, how many bytes the barrier awaits."""
        return [f"tw::mbarrier_arrive_expect({barrier}, {self.bytes});"] if self.sharers > 1 else []

    def ready_lines(self) -> list[str]:
        """Print how all threads announce that the barrier of their block is ready."""
        return ["tw::cluster_arrive_relaxed();"] if self.sharers > 1 else []

    def lines(self, received: str, barrier: str) -> list[str]:
        """Print how the whole sums of slice ``part`` get into the first registers of each block.

        ``received`` and ``barrier`` are addresses. Lines read ``thread`` and ``group`` like those
        of the store. Each block adds its own sums, then those of the ranks that follow its own in
        turn, so that results do not depend on timing.
        """
        if self.sharers == 1:
            return []
        places, barriers = (
            ", ".join(f"tw::map_shared({address}, {rank})" for rank in range(self.sharers))
            for address in (received, barrier)
        )
        return [
            *self.others_lines(),
            f"const u32 to[{self.sharers}] = {{{places}}};",
            f"const u32 done[{self.sharers}] = {{{barriers}}};",
            *self._each("o", self._send),
            f"tw::mbarrier_wait_cluster({barrier}, 0);",
            *self._each("i", lambda block, vector: self._receive(received, block, vector)),
        ]

    def others_lines(self) -> list[str]:
        """Print how all threads wait until every block of the cluster has its barrier.

        They do so once the main loop is over; nothing may be sent before. Each thread that arrived
        must also wait, the producer's included.
        """
        return ["tw::sync_warp();", "tw::cluster_wait();"] if self.sharers > 1 else []

    def _each(self, prefix: str, lines: Callable[[Index, Index], list[str]]) -> list[str]:
        """Print ``lines(block, vector)`` for each vector of a slice."""
        vectors = repeat(self.row_blocks, self._slice // VECTOR)
        return ["{", *unrolled(vectors, 0, lambda at: lines(*at), prefix), "}"]

    def _send(self, block: Index, vector: Index) -> list[str]:
        """Print how a vector is sent to all other blocks, and the own one moved to the front.

        Blocks send in different orders, so that none is sent everything at once. The own slice goes
        to the first registers, whose sums have been sent by then.
        """
        sums = [
            [
                f"sums[{block.text}][{(vector * VECTOR + rank * self._slice + e).text}]"
                for e in range(VECTOR)
            ]
            for rank in range(self.sharers)
        ]
        lines = []
        for rank, mine in enumerate(sums):
            last = self.sharers - 1 - rank
            between = f"((part + {last}) % {self.sharers})" if last else "part"
            before = index(between, self.sharers - 1)
            to = index(f"to[{rank}]") + self._place(before, block, vector)
            lines.append(
                f"if (part != {rank}) tw::store_async_x4({to.text}, &{mine[0]}, done[{rank}]);"
            )
        for rank, mine in enumerate(sums[1:], 1):
            moves = " ".join(f"{to} = {own};" for to, own in zip(sums[0], mine, strict=True))
            lines.append(f"if (part == {rank}) {{ {moves} }}")
        return lines

    def _receive(self, received: str, block: Index, vector: Index) -> list[str]:
        first = vector * VECTOR
        mine = [f"sums[{block.text}][{(first + e).text}]" for e in range(VECTOR)]
        lines = [f"float sent[{VECTOR}];"]
        for before in range(self.sharers - 1):
            at = index(received) + self._place(index(before), block, vector)
            lines.append(f"tw::load_shared<{VECTOR}>(sent, {at.text});")
            lines += [f"{total} += sent[{e}];" for e, total in enumerate(mine)]
        return lines

    def _place(self, before: Index, block: Index, vector: Index) -> Index:
        """Return the offset in bytes of a vector that one of the other blocks sends to a thread.

        ``before`` is the number of blocks between the receiver and the sender, as ranks go round.
        """
        thread = index("thread", GROUP)
        return self._layout.index([before, index("group"), block, vector, thread, Index()]) * 4

    @property
    def _slice(self) -> int:
        """Sums of a thread in a slice of each block."""
        return self.block_sums // self.sharers

    @property
    def _layout(self) -> Layout:
        """The layout of received vectors: those of neighbouring threads are neighbours.

        So there are no bank conflicts.
        """
        vectors = self._slice // VECTOR
        return row_major(self.sharers - 1, self.members, self.row_blocks, vectors, GROUP, VECTOR)
