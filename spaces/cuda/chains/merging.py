"""Keys split over blocks, and parts merged by the corrections that tiles are joined by.

Each block leaves the states and sums of its part in the workspace, every thread its own. Who merges
them is a decision: the last block to come of those that share a tile, which tickets tell, or a
second kernel, in which many blocks share the sums of a tile. Which part came when makes no
difference: they are merged in the order of their keys, states first, so that what sums are
multiplied by is known and all their loads are in flight together. A row's states lie together by
fours, once for the four lanes that share it, and a thread's sums by twos, of neighbouring columns.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

from spaces.algebra.integers import round_up
from spaces.algebra.mapping_emit import indented
from spaces.cuda.chains.chain import FragmentChain
from spaces.cuda.chains.rooms import BLOCK, GLOBAL, Crew, Room
from spaces.cuda.chains.scopes import ThreadScope
from spaces.cuda.reducers import joined
from spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from spaces.derivation.scopes import series

_ALIGNMENT = 128
_AHEAD = 16
"""Parts whose states are on their way at a time."""
_MOST_AHEAD = 32
"""Sums of a row that are."""
TOGETHER = 4
"""Words of a row's states that lie together."""
SHARERS = 4
"""Neighbouring threads that share their rows."""


@dataclass(frozen=True)
class PartMerging:
    """Of ``split`` parts of each of ``tiles`` tiles of rows. ``sums`` give the C text of the sum
    ``i`` of a thread for each weighing, of which it has ``count``. Whoever merges only some of the
    sums says how many there are, ``left``, and which one ``i`` is by ``place``. Threads leave
    states where ``has_states`` holds, if it is not empty."""

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

    @property
    def zeroed_bytes(self) -> int:
        """A ticket for each tile: zero before the kernel, and afterwards."""
        return round_up(4 * self.tiles, _ALIGNMENT) if self.split > 1 else 0

    @property
    def workspace_bytes(self) -> int:
        """The tickets, then all parts."""
        return self.zeroed_bytes + self.part_bytes if self.split > 1 else 0

    @property
    def own_bytes(self) -> int:
        """A part."""
        return self._values * self.threads * 4

    @property
    def part_bytes(self) -> int:
        """All parts."""
        return self.tiles * self.split * self.own_bytes

    def leave(self, inside: str) -> list[str]:
        """Leave a part, and declare ``is_last``: whether all others have been left. Rows ``r`` for
        which ``inside`` does not hold have none."""
        if self.split == 1:
            return []
        crew = self.crew
        return [
            *self.put(inside),
            "tw::fence_global();",
            crew.sync,
            f"u32 *const ticket = (u32 *)({crew.workspace}) + {crew.tile};",
            f"if ({crew.leads}) tw::store_shared<u32>({crew.word}, tw::take_ticket(ticket));",
            crew.sync,
            f"const bool is_last = tw::load_shared<u32>({crew.word}) == {self.split - 1};",
        ]

    def collect(self, inside: str) -> list[str]:
        """Merge all parts, where ``is_last`` holds."""
        if self.split == 1:
            return []
        return [
            "tw::fence_global();",
            f"if ({self.crew.leads}) tw::store_global(ticket, 0u);",
            *self.merge(inside),
        ]

    def parts(self) -> list[str]:
        """Declare ``parts``, where a thread's own of the first part are."""
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
        return self.chain.rows * self._row_words // SHARERS

    @property
    def _row_words(self) -> int:
        """Of each row, in whole fours."""
        return row_words(self._states + len(self.chain.placed))

    def _mine(self, part: str, in_block: bool) -> str:
        """Declare where a thread's own of a part are, of a cluster's of this block or of all."""
        size, each = self._values * self.threads * self.room.step, self.room.each
        at = f"parts + {part} * {size}"
        if each and not in_block:
            at = f"tw::map_shared(parts + {part} % {each} * {size}, {part} / {each})"
        return f"{self.room.address} mine = {at};"

    def _states_at(self, first: int) -> str:
        """Where some states of row ``r`` are."""
        thread, words = f"(i32)({self.crew.thread})", self._row_words
        row = f"r * {self.threads // SHARERS * words} + {thread} / {SHARERS} * {words}"
        return f"mine + ({row} + {first} - {thread}) * {self.room.step}"

    def _sums_at(self, n: int) -> str:
        """Where a thread's own sums ``i`` and ``i + 1`` are."""
        first = self._state_words + n * (self.left or self.count)
        place = f"({first} + {self.place('i')}) * {self.threads} + (i32)({self.crew.thread})"
        return f"mine + ({place}) * {self.room.step}"

    def _each_row(self, body: Sequence[str], inside: str) -> list[str]:
        head = f"for (int r = 0; r < {self.chain.rows}; r++) if ({inside}) {{"
        return ["#pragma unroll", head, *indented(body), "}"]

    @property
    def _row_count(self) -> int:
        """Sums of a thread for one of its rows."""
        return self.count // self.chain.rows

    def _each_two(self, body: Sequence[str]) -> list[str]:
        """A loop over the sums ``i`` and ``i + 1`` of row ``r``, which lie as matrix instructions
        leave them."""
        number = f"r / 2 * {2 * self._row_count} + n * 4 + r % 2 * 2"
        return [
            "#pragma unroll",
            f"for (int n = 0; n < {self._row_count // 2}; n++) {{",
            f"  const int i = {number};",
            *indented(body),
            "}",
        ]

    def put(self, inside: str) -> list[str]:
        """Leave a part in the workspace."""
        values = [*(f"state{k}[r]" for k in range(self._states)), "seen[r] ? 1.0f : 0.0f"]
        values += [f"tw::bits_float((u32)place{k}[r])" for k in self.chain.placed]
        values += ["0.0f"] * (self._row_words - len(values))
        rows = []
        for first in range(0, len(values), TOGETHER):
            some = ", ".join(values[first : first + TOGETHER])
            rows.append(f"const float states{first}[{TOGETHER}] = {{{some}}};")
            rows.append(self.room.stored(TOGETHER, self._states_at(first), f"states{first}"))
        leads = f"({self.crew.thread}) % {SHARERS} == 0"
        having = f"{self.has_states} && {leads}" if self.has_states else leads
        rows = [f"if ({having}) {{", *indented(rows), "}"]
        sums = []
        for n, text in enumerate(self.sums):
            sums.append(f"const float two{n}[2] = {{{text('i')}, {text('(i + 1)')}}};")
            sums.append(self.room.stored(2, self._sums_at(n), f"two{n}"))
        body = self._each_row([*rows, *(self._each_two(sums) if sums else [])], inside)
        return [
            *self.parts(),
            "{",
            *indented([self._mine(self.crew.part, in_block=True), *body]),
            "}",
        ]

    def merge(self, inside: str) -> list[str]:
        """Begin with nothing and merge the states of part after part; then add their sums. Row by
        row, so that nothing parts the loads of one."""
        states = [*self.chain.no_states(), *self._each_part(self._merged_states(), _AHEAD)]
        sums = []
        if self.sums:
            none = [f"{text('i')} = {text('(i + 1)')} = 0.0f;" for text in self.sums]
            sums += self._each_two(none)
            ahead = max(1, min(_AHEAD, _MOST_AHEAD // self._row_count))
            sums += self._each_part(self._added_sums(), ahead)
        return self._each_row([*states, *sums], inside)

    def _each_part(self, body: Sequence[str], ahead: int) -> list[str]:
        return [
            f"#pragma unroll {ahead}",
            f"for (int part = 0; part < {self.split}; part++) {{",
            f"  {self._mine('part', in_block=False)}",
            *indented(body),
            "}",
        ]

    def _load_states(self, wanted: Iterable[int]) -> list[str]:
        """Some of the states that a part has of row ``r``, in ``otherK``, and all that lie beside
        them, in ``heldN``."""
        wanted = list(wanted)
        lines = []
        for first in sorted({k // TOGETHER * TOGETHER for k in wanted}):
            lines.append(f"float held{first}[{TOGETHER}];")
            lines += self.room.loaded(TOGETHER, f"held{first}", self._states_at(first))
        return [*lines, *(f"const float other{k} = {_held(k)};" for k in wanted)]

    def _merged_states(self) -> list[str]:
        """The states of row ``r`` with those of a part."""
        chain = self.chain
        lines = self._load_states(range(self._states + 1 + len(chain.placed)))
        lines.append(f"const bool has_other = other{self._states} != 0.0f;")
        scopes = (chain.states("state{}[r]", "l", lines), chain.states("other{}", "m", lines))
        now = chain.states("merged{}", "n", lines)
        for k, r in enumerate(chain.chained.scalars):
            if k in chain.placed:
                lines += self._merged_place(k, r.reducer)
                continue
            sides = zip(
                (f"state{k}[r]", f"other{k}"), scopes, ("seen[r]", "has_other"), strict=True
            )
            values = [_moved(r, value, scope, now, some) for value, scope, some in sides]
            lines.append(f"const float merged{k} = {joined(r.reducer, *values)};")
        lines += [f"state{k}[r] = merged{k};" for k in range(self._states)]
        return [*lines, "seen[r] |= has_other;"]

    def _merged_place(self, k: int, reducer: str) -> list[str]:
        """The better value of both, and its place."""
        place = self._states + 1 + self.chain.placed.index(k)
        return [
            f"const int at{k} = (int)tw::float_bits(other{place});",
            f"float merged{k} = state{k}[r];",
            f"tw_{reducer}(merged{k}, place{k}[r], other{k}, at{k});",
        ]

    def _added_sums(self) -> list[str]:
        """The sums of row ``r`` of a part, corrected from its own results to those of all parts."""
        chain = self.chain
        read = {name.name for scaling in chain.scalings for name in scaling.exponent.reads}
        lines = self._load_states(k for k, r in enumerate(chain.chained.scalars) if r.name in read)
        own, now = chain.states("other{}", "l", lines), chain.states("state{}[r]", "m", lines)
        for i, scaling in enumerate(chain.scalings):
            lines.append(f"const float factor{i} = {_power(scaling, own, now)};")
        added = []
        for n, text in enumerate(self.sums):
            correction = chain.chained.weighings[n].reduction.correction
            scaled = isinstance(correction, Scaling)
            factor = f" * factor{chain.scalings.index(correction)}" if scaled else ""
            added.append(f"float two{n}[2];")
            added += self.room.loaded(2, f"two{n}", self._sums_at(n))
            added += [f"{text(f'(i + {e})')} += two{n}[{e}]{factor};" for e in range(2)]
        return [*lines, *self._each_two(added)]


def row_words(states: int) -> int:
    """Words that are left of a row: its states, places among them, whether it has a key, and what
    fills up the last :data:`TOGETHER`."""
    return int(round_up(states + 1, TOGETHER))


def _held(k: int) -> str:
    return f"held{k // TOGETHER * TOGETHER}[{k % TOGETHER}]"


def _power(scaling: Scaling, before: ThreadScope, now: ThreadScope) -> str:
    change = f"{now.text(scaling.exponent)} - {before.text(scaling.exponent)}"
    return now.power_of(scaling.function, change)


def _moved(r: ChainReduction, value: str, own: ThreadScope, now: ThreadScope, some: str) -> str:
    """The state of a part, corrected from its own results to those of both."""
    match r.correction:
        case Scaling():
            return f"{value} * {_power(r.correction, own, now)}"
        case Series():
            moved = " + ".join([value, *series(r.correction, own, now)])
            return f"({some} ? {moved} : {value})"
    return value
