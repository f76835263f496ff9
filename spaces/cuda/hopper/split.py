"""Several blocks share the depth of a Hopper tile and put their sums together in one of two ways.

Through memory, each warpgroup adds its sums to a workspace by atomics and takes a ticket; the one
with the last ticket reads the whole sums, leaves zeros and goes on. In a cluster, each block sends
each other one a slice of its sums and finishes a slice itself. Either way sums lie as in
registers, the threads' side by side.
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
"""Sums sent at a time."""
_ALIGNMENT = 256


@dataclass(frozen=True)
class SharedDepth:
    """``parts`` clusters share each of ``tiles`` tiles, whose sums lie in ``members`` warpgroups
    as ``blocks`` blocks of ``registers`` in each thread."""

    parts: int
    tiles: int
    members: int
    blocks: int
    registers: int

    @property
    def workspace_bytes(self) -> int:
        """Scratch memory, all of it zero before and after: tickets, then sums."""
        return self._ticket_bytes + 4 * self._layout.size if self.parts > 1 else 0

    def lines(self, tile: str, member: str, slot: str, body: list[str]) -> list[str]:
        """Run ``body`` in the warpgroup that holds the whole sums, in ``sums[block][register]``.

        ``tile`` and ``member`` are C expressions; ``slot`` is the address of a word of shared
        memory of the warpgroup's own. Reads ``thread`` and ``group`` like the store's lines.
        """
        if self.parts == 1:
            return body
        meet = ("tw::sync_named", "1 + group", f"{GROUP}")
        last = LastToCome("ticket", slot, "thread == 0", meet)
        return [
            f"const int member = (int)({tile}) * {self.members} + {member};",
            "u32 *const ticket = (u32 *)workspace + member;",
            f"float *const whole = (float *)(workspace + {self._ticket_bytes});",
            *self._each("d", lambda at, mine: [f"tw::atomic_add({at}, {mine});"]),
            # every thread's additions come before the ticket, which one thread takes for all
            *CUDA.written(last.publish, last.take),
            f"if ({last.number} == {self.parts - 1}) {{",
            "  tw::fence_global();",
            *(f"  {line}" for line in self._each("r", _take)),
            *(f"  {line}" for line in (*CUDA.written(last.reset), *body)),
            "}",
        ]

    def _each(self, prefix: str, line: Callable[[str, str], list[str]]) -> list[str]:
        """Lines of ``line(place in the workspace, sum)`` for each sum of a thread."""

        def body(indices: tuple[Index, ...]) -> list[str]:
            block, register = indices
            place = self._layout.index([index("member"), block, register, index("thread", GROUP)])
            return line(f"whole + {place.text}", f"sums[{block.text}][{register.text}]")

        return unrolled(repeat(self.blocks, self.registers // 8) * repeat(1, 8), 0, body, prefix)

    @property
    def _layout(self) -> Layout:
        return row_major(self.tiles * self.members, self.blocks, self.registers, GROUP)

    @property
    def _ticket_bytes(self) -> int:
        return int(round_up(4 * self.tiles * self.members, _ALIGNMENT))


def _take(at: str, mine: str) -> list[str]:
    return [f"{mine} = tw::load_global({at});", f"tw::store_global({at}, 0.0f);"]


@dataclass(frozen=True)
class ClusterDepth:
    """The ``parts`` blocks of a cluster share a tile, part after part by rank: each ends up with
    the whole sums of a slice of its columns (reduce-scatter), as ``members`` warpgroups hold them
    in ``blocks`` blocks of ``registers`` in each thread.

    Sums travel by asynchronous stores, which complete a barrier of the block they go to: it waits
    for the last of them and for nothing else.
    """

    parts: int
    members: int
    blocks: int
    registers: int

    @property
    def bytes(self) -> int:
        """Shared memory for what the other blocks send."""
        return 4 * self._layout.size if self.parts > 1 else 0

    def start_lines(self, barrier: str) -> list[str]:
        """What one thread of a block does before all others, ahead of ``fence_barrier_init``.
        ``barrier`` is an address."""
        return [f"tw::mbarrier_init({barrier}, 1);"] if self.parts > 1 else []

    def expect_lines(self, barrier: str) -> list[str]:
        """What the same thread does after that."""
        return [f"tw::mbarrier_arrive_expect({barrier}, {self.bytes});"] if self.parts > 1 else []

    def ready_lines(self) -> list[str]:
        """What all threads do then: say that their block's barrier is there."""
        return ["tw::cluster_arrive_relaxed();"] if self.parts > 1 else []

    def lines(self, received: str, barrier: str) -> list[str]:
        """Put the whole sums of slice ``part`` into the first registers of each block.

        ``received`` and ``barrier`` are addresses. Reads ``thread`` and ``group`` like the store's
        lines. Each block adds its own sums, then those of the ranks that follow its own in turn,
        so that results do not depend on timing.
        """
        if self.parts == 1:
            return []
        places, barriers = (
            ", ".join(f"tw::map_shared({address}, {rank})" for rank in range(self.parts))
            for address in (received, barrier)
        )
        return [
            *self.others_lines(),
            f"const u32 to[{self.parts}] = {{{places}}};",
            f"const u32 done[{self.parts}] = {{{barriers}}};",
            *self._each("o", self._send),
            f"tw::mbarrier_wait_cluster({barrier}, 0);",
            *self._each("i", lambda block, vector: self._receive(received, block, vector)),
        ]

    def others_lines(self) -> list[str]:
        """All threads wait here, once the loop is over, until every block of the cluster has
        initialised its barrier: nothing may be sent before. A thread that arrived must also wait.
        """
        return ["tw::sync_warp();", "tw::cluster_wait();"] if self.parts > 1 else []

    def _each(self, prefix: str, lines: Callable[[Index, Index], list[str]]) -> list[str]:
        """Lines of ``lines(block, vector)`` for each vector of a slice."""
        vectors = repeat(self.blocks, self._slice // VECTOR)
        return ["{", *unrolled(vectors, 0, lambda at: lines(*at), prefix), "}"]

    def _send(self, block: Index, vector: Index) -> list[str]:
        """To all other blocks in turn, so that none is sent everything at once; then its own into
        the first registers, which have been sent by then."""
        sums = [
            [
                f"sums[{block.text}][{(vector * VECTOR + rank * self._slice + e).text}]"
                for e in range(VECTOR)
            ]
            for rank in range(self.parts)
        ]
        lines = []
        for rank, mine in enumerate(sums):
            last = self.parts - 1 - rank
            between = f"((part + {last}) % {self.parts})" if last else "part"
            before = index(between, self.parts - 1)
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
        for before in range(self.parts - 1):
            at = index(received) + self._place(index(before), block, vector)
            lines.append(f"tw::load_shared<{VECTOR}>(sent, {at.text});")
            lines += [f"{total} += sent[{e}];" for e, total in enumerate(mine)]
        return lines

    def _place(self, before: Index, block: Index, vector: Index) -> Index:
        """Bytes to where a thread finds a vector of one of the other blocks: ``before`` come in
        between, as ranks go round."""
        thread = index("thread", GROUP)
        return self._layout.index([before, index("group"), block, vector, thread, Index()]) * 4

    @property
    def _slice(self) -> int:
        """Sums of a thread in a slice of each block."""
        return self.registers // self.parts

    @property
    def _layout(self) -> Layout:
        """Neighbouring threads' vectors are neighbours, which keeps clear of bank conflicts."""
        vectors = self._slice // VECTOR
        return row_major(self.parts - 1, self.members, self.blocks, vectors, GROUP, VECTOR)
