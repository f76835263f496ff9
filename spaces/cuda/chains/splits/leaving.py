"""Parts of the keys of a tile of rows, left by threads for whoever merges them.

A row's states lie together by fours, once for the four lanes that share it, and a thread's sums by
twos, of neighbouring columns, or by fours, of two rows each.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.chains.chain import FragmentChain
from tilewright.spaces.cuda.chains.splits.rooms import BLOCK, GLOBAL, Crew, Room
from tilewright.spaces.kernels.text import CUDA

_ALIGNMENT = 128
TOGETHER = 4
"""Words of a row's states that lie together."""
SHARERS = 4
"""Neighbouring threads that share their rows."""


@dataclass(frozen=True)
class LeftParts:
    """The ``split`` parts of each of ``tiles`` tiles of rows.

    ``sums`` are functions from an index to the C text of a thread's sum for each weighing, of which
    it has ``count``. A merge of only some of the sums gives the number of all, ``left``, and the
    index among these, ``place``. Threads leave states where the C condition ``has_states`` holds,
    if it is not empty. ``together`` is the number of a thread's sums that lie together.
    """

    chain: FragmentChain
    split: int
    tiles: int
    threads: int
    sums: Sequence[Callable[[str], str]]
    count: int
    crew: Crew = BLOCK
    left: int | None = None
    place: Callable[[str], str] = str
    has_states: str = ""
    room: Room = GLOBAL
    together: int = 2

    @property
    def zeroed_bytes(self) -> int:
        """Bytes of a ticket for each tile: zero before the kernel, and afterwards."""
        return round_up(4 * self.tiles, _ALIGNMENT) if self.split > 1 else 0

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the tickets, then of all parts."""
        return self.zeroed_bytes + self.part_bytes if self.split > 1 else 0

    @property
    def own_bytes(self) -> int:
        """Bytes of a part."""
        return self._values * self.threads * 4

    @property
    def part_bytes(self) -> int:
        """Bytes of all parts."""
        return self.tiles * self.split * self.own_bytes

    def parts(self) -> list[str]:
        """Print the declaration of ``parts``, the address of a thread's words of the first part."""
        crew, size = self.crew, f"{self._values * self.threads}"
        if self.room is not GLOBAL:
            return [f"const u32 parts = {crew.room} + {crew.thread} * {self.room.step};"]
        return [
            f"float *const parts = (float *)({crew.workspace} + {self.zeroed_bytes})",
            f"    + (i64)({crew.tile}) * {self.split} * {size} + {crew.thread};",
        ]

    @property
    def _states(self) -> int:
        return len(self.chain.chained.scalars)

    @property
    def _values(self) -> int:
        """Words of a thread: its share of what each row has, and all sums."""
        return self._state_words + len(self.sums) * (self.left or self.count)

    @property
    def _state_words(self) -> int:
        return self.chain.rows * self.row_words // SHARERS

    @property
    def row_words(self) -> int:
        """Words of each row's states, in whole fours."""
        return row_words(self._states + len(self.chain.placed))

    def mine(self, part: str) -> str:
        """Return the declaration of ``mine``, the address of a thread's words of a part."""
        size = self._values * self.threads * self.room.step
        return f"{self.room.address} mine = parts + {part} * {size};"

    def states_at(self, first: int) -> str:
        """Return C text of the address of states of row ``r``, from ``first`` on."""
        thread, words = f"(i32)({self.crew.thread})", self.row_words
        row = f"r * {self.threads // SHARERS * words} + {thread} / {SHARERS} * {words}"
        return f"mine + ({row} + {first} - {thread}) * {self.room.step}"

    def sums_at(self, n: int) -> str:
        """Return C text of the address of a thread's sums ``i`` and ``i + 1``.

        Those that lie together with them follow.
        """
        first, thread = self._state_words + n * (self.left or self.count), self.crew.thread
        if self.together == 2:
            place = f"({first} + {self.place('i')}) * {self.threads} + (i32)({thread})"
            return f"mine + ({place}) * {self.room.step}"
        vector = f"({first} + i / 4 * 4) * {self.threads} + 3 * (i32)({thread}) + i % 4"
        return f"mine + ({vector}) * {self.room.step}"

    def each_row(self, body: Sequence[str], inside: str, step: int | None = None) -> list[str]:
        """Return a loop over the rows ``r``, or every second one, for which ``inside`` holds."""
        rows = CUDA.when(inside, body)
        return CUDA.loop("r", self.chain.rows, rows, step=step, unroll=True, brief=True)

    @property
    def _row_count(self) -> int:
        """Sums of a thread for one of its rows."""
        return self.count // self.chain.rows

    def _each_two(self, body: Sequence[str]) -> list[str]:
        """Return a loop over the sums ``i`` and ``i + 1`` of row ``r``.

        They lie as matrix instructions leave them.
        """
        number = f"r / 2 * {2 * self._row_count} + n * 4 + r % 2 * 2"
        inner = [f"const int i = {number};", *body]
        return CUDA.loop("n", self._row_count // 2, inner, unroll=True)

    def put(self, inside: str) -> list[str]:
        """Print how a part is left in the workspace."""
        rows = []
        for first, declared in self.states_of_row().items():
            rows.append(declared)
            rows.append(self.room.stored(TOGETHER, self.states_at(first), f"states{first}"))
        leads = f"({self.crew.thread}) % {SHARERS} == 0"
        having = f"{self.has_states} && {leads}" if self.has_states else leads
        rows = CUDA.when(having, rows)
        sums = []
        for n, text in enumerate(self.sums):
            sums.append(f"const float two{n}[2] = {{{text('i')}, {text('(i + 1)')}}};")
            sums.append(self.room.stored(2, self.sums_at(n), f"two{n}"))
        body = self.each_row([*rows, *(self._each_two(sums) if sums else [])], inside)
        return [*self.parts(), *CUDA.block(self.mine(self.crew.part), *body)]

    def row_values(self, through: Callable[[str], str] = str) -> list[str]:
        """Return C texts of a part's words of row ``r``: states, whether it has a key, places.

        Each is taken ``through`` a function of C text before it becomes a float.
        """
        values = [through(f"state{k}[r]") for k in range(self._states)]
        values.append(through("seen[r] ? 1.0f : 0.0f"))
        places = (through(f"place{k}[r]") for k in self.chain.placed)
        return [*values, *(f"tw::bits_float((u32){place})" for place in places)]

    def states_of_row(self) -> Mapping[int, str]:
        """Return the declarations of a part's words of row ``r``, by fours.

        They are ``states0``, ``states4``, ..., by the number of the first word.
        """
        values = self.row_values()
        values += ["0.0f"] * (self.row_words - len(values))
        found = {}
        for first in range(0, len(values), TOGETHER):
            some = ", ".join(values[first : first + TOGETHER])
            found[first] = f"const float states{first}[{TOGETHER}] = {{{some}}};"
        return found


def row_words(states: int) -> int:
    """Return the words that are left of a row, in whole multiples of :data:`TOGETHER`.

    They are its states, places among them, and whether it has a key.
    """
    return int(round_up(states + 1, TOGETHER))
