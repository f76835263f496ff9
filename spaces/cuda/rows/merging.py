"""Merges of the states that several threads have of one row.

Lanes merge by shuffles, warps through shared memory, and the blocks of a cluster by asynchronous
stores to each other's shared memory, which need no fence. Where the lanes of a warp have different
rows, all threads merge through shared memory. In the end every thread of the row has the whole
states.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.rows.long_sums import per_row
from tilewright.spaces.cuda.rows.reducers import States
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.kernels.text import CUDA

SLOT = 8
"""Bytes of shared memory for a variable."""
SENT = 4
"""Variables, 4 bytes each, that a block sends at a time."""
BARRIER = 16
"""Bytes of an mbarrier, padded to align the vectors behind it."""
BUFFERS = 2
"""Rounds of exchange, one for each tile of a block, that have room of their own.

Two suffice: a block sends for the round after the next only when it has received what all others
sent for the next one, which are thus done with the round before.
"""


def exchange_bytes(variables: Any, cluster: Any) -> Any:
    """Return the shared memory, in bytes, for the states that the blocks of a cluster send.

    Each block sends ``variables`` of 4 bytes to each; both arguments may be numbers or arrays.
    """
    return BUFFERS * (BARRIER + ceil_div(variables, SENT) * SENT * 4 * cluster)


@dataclass(frozen=True)
class _Shuffle:
    """The variable of the lane whose number differs in ``mask``."""

    mask: int

    def __call__(self, kind: str, name: str) -> str:
        return f"tw::shuffle_xor({name}, {self.mask})"


@dataclass(frozen=True)
class _Slot:
    """The variable at its place in shared memory."""

    place: Mapping[str, str]

    def __call__(self, kind: str, name: str) -> str:
        return f"tw::load_shared<{kind}>(shared + {self.place[name]})"


@dataclass(frozen=True)
class Merging:
    """The merge of ``states`` over ``row_threads`` threads in each of ``cluster`` blocks.

    A block has ``block_rows`` rows; ``place`` is where its slots begin in shared memory. ``across``
    is true if neighbouring threads have different rows.
    """

    states: States
    row_threads: int
    block_rows: int
    cluster: int
    across: bool
    place: int

    @property
    def warps(self) -> int:
        """Warps of a block that share a row."""
        return max(1, self.row_threads // WARP)

    @property
    def bytes(self) -> int:
        """Bytes of shared memory that the merge takes."""
        if self.across:
            parts = self.row_threads * self.block_rows if self.row_threads > 1 else 0
        else:
            parts = self.warps if self.warps > 1 else 0
        return self._variables * parts * SLOT + self._sent_bytes

    @property
    def _variables(self) -> int:
        """Variables of all rows that a thread has at once."""
        return len(self.states.variables) * self.states.rows

    @property
    def _sent_bytes(self) -> int:
        return int(exchange_bytes(self._variables, self.cluster)) if self.cluster > 1 else 0

    @property
    def barriers(self) -> list[str]:
        """C texts of the barriers that states sent by other blocks complete.

        Behind each is the room for what is sent; see :data:`BUFFERS`.
        """
        first, apart = self.place + self.bytes - self._sent_bytes, self._sent_bytes // BUFFERS
        return [f"shared + {first + n * apart}" for n in range(BUFFERS)]

    def lines(self) -> list[str]:
        """Print how the threads of a row come to its whole states; all threads of a block run
        this."""
        if self.across:
            return self._across() if self.row_threads > 1 else []
        found = self._by_shuffles(min(self.row_threads, WARP), 1)
        if self.warps > 1:
            found += self._through_shared()
        if self.cluster > 1:
            found += self._through_cluster()
        return found

    def _across(self) -> list[str]:
        """Print merges through shared memory of threads whose numbers in a row differ in one bit.

        Bits follow each other from the lowest.
        """
        rows, wide = self.block_rows, self.row_threads * self.block_rows
        lines: list[str] = []
        mask = 1
        while mask < self.row_threads:
            other = f"(part ^ {mask}) * {rows} + group"
            place = {n: at for _, n, at in self._places(self.place, wide, other)}
            lines += [
                *["tw::sync_block();"] * (mask > 1),
                *self._stored(self.place, wide, f"part * {rows} + group"),
                "tw::sync_block();",
                *per_row(self.states.rows, self.states.merge(_Slot(place), mask)),
            ]
            mask *= 2
        return lines

    def _by_shuffles(self, lanes: int, threads: int) -> list[str]:
        """Print merges of lanes whose numbers differ in one bit below ``lanes``, bit after bit.

        Before, each lane has the states of ``threads`` threads.
        """
        lines: list[str] = []
        mask = 1
        while mask < lanes:
            lines += per_row(self.states.rows, self.states.merge(_Shuffle(mask), threads * mask))
            mask *= 2
        return lines

    def _through_shared(self) -> list[str]:
        stored = self._stored(self.place, self.warps, f"threadIdx.x / {WARP}")
        return [
            *CUDA.when(f"threadIdx.x % {WARP} == 0", stored),
            "tw::sync_block();",
            *self._each(
                "{name} = tw::load_shared<{kind}>(shared + {at});",
                (self.place, self.warps, f"threadIdx.x % {self.warps}"),
            ),
            *self._by_shuffles(self.warps, WARP),
        ]

    def _through_cluster(self) -> list[str]:
        """Print how blocks send their states to all blocks, themselves included, and merge.

        Each lane takes the states of one block; then lanes merge by shuffles.
        """
        apart = self._sent_bytes // BUFFERS
        lines = [
            f"const u32 done = {self.barriers[0]} + {apart} * (round & 1);",
            f"const u32 received = done + {BARRIER};",
            *self._send(),
            "tw::mbarrier_wait_cluster(done, (round >> 1) & 1);",
            *self._receive(),
        ]
        return [*CUDA.block(*lines), *self._by_shuffles(self.cluster, self.row_threads)]

    @property
    def _vectors(self) -> list[tuple[int, int]]:
        """The first variable of each vector that is sent, and its offset in bytes from the first
        vector."""
        count = ceil_div(self._variables, SENT)
        return [(i * SENT, i * SENT * 4 * self.cluster) for i in range(count)]

    @property
    def _all_states(self) -> list[tuple[str, str]]:
        """The type and the variable of each state of each row."""
        rows = range(self.states.rows)
        return [(kind, f"{n}[{k}]") for k in rows for kind, n in self.states.variables]

    def _send(self) -> list[str]:
        names = self._all_states
        own = [name if kind == "float" else f"tw::bits_float((u32){name})" for kind, name in names]
        own += ["0.0f"] * (len(self._vectors) * SENT - len(own))
        whole = len(own) * 4 * self.cluster
        stores = [f"tw::store_async_x4(to + {a}, sent + {i}, there);" for i, a in self._vectors]
        sending = [
            f"const u32 mine = received + tw::cluster_rank() * {SENT * 4};",
            "const u32 to = tw::map_shared(mine, threadIdx.x);",
            "const u32 there = tw::map_shared(done, threadIdx.x);",
            *stores,
        ]
        return [
            f"float sent[{len(own)}] = {{{', '.join(own)}}};",
            f"if (threadIdx.x == 0) tw::mbarrier_arrive_expect(done, {whole});",
            *CUDA.when(f"threadIdx.x < {self.cluster}", sending),
        ]

    def _receive(self) -> list[str]:
        taken = enumerate(self._all_states)
        return [
            f"const u32 from = received + threadIdx.x % {self.cluster} * {SENT * 4};",
            *(
                f"tw::load_shared<{SENT}>(sent + {first}, from + {at});"
                for first, at in self._vectors
            ),
            *(
                f"{name} = {'' if kind == 'float' else '(int)tw::float_bits'}(sent[{i}]);"
                for i, (kind, name) in taken
            ),
        ]

    def _stored(self, place: int, wide: int, column: str) -> list[str]:
        return self._each("tw::store_shared(shared + {at}, {name});", (place, wide, column))

    def _each(self, line: str, where: tuple[int, int, str]) -> list[str]:
        lines = [line.format(kind=k, name=n, at=at) for k, n, at in self._places(*where)]
        return per_row(self.states.rows, lines)

    def _places(self, place: int, wide: int, column: str) -> list[tuple[str, str, str]]:
        """Return type, name and offset in shared memory of each variable of row ``k``.

        Each variable has an array of rows that are ``wide`` slots wide; ``column`` is the slot.
        """
        rows = self.states.rows
        return [
            (
                kind,
                f"{name}[k]",
                f"{place + n * rows * wide * SLOT} + (k * {wide} + {column}) * {SLOT}",
            )
            for n, (kind, name) in enumerate(self.states.variables)
        ]


def exchange_begins(mergings: Sequence[Merging]) -> list[str]:
    """Print how a block of a cluster initialises its barriers and starts to count rounds."""
    lines = [f"tw::mbarrier_init({b}, 1);" for merging in mergings for b in merging.barriers]
    return [
        *CUDA.when("threadIdx.x == 0", [*lines, "tw::fence_barrier_init();"]),
        *("tw::sync_warp();", "tw::cluster_arrive_relaxed();"),
        "u32 round = 0;",
    ]


EXCHANGE_WAITS = ("if (round == 0) {", "  tw::sync_warp();", "  tw::cluster_wait();", "}")
"""Lines before the first exchange: no state is sent to a block that has not begun."""
