"""The merge of parts, where keys are split over blocks, by the corrections that join tiles.

Each block leaves the states and sums of its part in the workspace, every thread its own. The
decision ``merge`` says who merges them: the last block to come of those that share a tile, which
tickets tell, or a second kernel, in which many blocks share the sums of a tile. The order in which
parts are left makes no difference: they are merged in the order of their keys, states first, so
that the factors of sums are known and all their loads are in flight together.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.chains.scopes import ThreadScope, change
from tilewright.spaces.cuda.chains.splits.leaving import TOGETHER, LeftParts
from tilewright.spaces.cuda.chains.splits.rooms import GLOBAL
from tilewright.spaces.cuda.reducers import taken
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from tilewright.spaces.derivation.scopes import series
from tilewright.spaces.kernels.text import CUDA

_AHEAD = 16
"""Parts whose states are loaded at a time."""
_MOST_AHEAD = 32
"""The most sums of a row that are loaded at a time."""
_MOST_HELD = 128
"""The most words of all parts that a thread loads before it merges any."""


@dataclass(frozen=True)
class PartMerging(LeftParts):
    """The code of threads that leave parts, and merge them."""

    def leave(self, inside: str) -> list[str]:
        """Print how a part is left, and the declaration of ``is_last``.

        That is true if all other parts have been left. Rows ``r`` for which ``inside`` does not
        hold have none.
        """
        if self.split == 1:
            return []
        crew = self.crew
        return [
            *self.put(inside),
            *CUDA.written(crew.last.publish),
            f"u32 *const ticket = (u32 *)({crew.workspace}) + {crew.tile};",
            *CUDA.written(crew.last.take),
            f"const bool is_last = {crew.last.number} == {self.split - 1};",
        ]

    def collect(self, inside: str) -> list[str]:
        """Print how all parts are merged, where ``is_last`` holds."""
        if self.split == 1:
            return []
        return [
            "tw::fence_global();",
            *CUDA.written(self.crew.last.reset),
            *self.merge(inside),
        ]

    @property
    def _is_held(self) -> bool:
        """True if a second kernel merges, whose threads have registers for all parts.

        Then no load waits for another, which would be most of its time.
        """
        words = self.row_words + len(self.sums) * self._row_count
        is_second = self.left is not None and self.room is GLOBAL
        return is_second and self.chain.rows * self.split * words <= _MOST_HELD

    def _hold(self, inside: str) -> list[str]:
        """Print how all parts of all rows are loaded, if they are held."""
        if not self._is_held:
            return []
        rows, names = self.chain.rows, range(0, self.row_words, TOGETHER)
        declared = [f"float all{k}[{rows}][{self.split}][{TOGETHER}];" for k in names]
        two = f"[{rows}][{self.split}][{self._row_count // 2}][2]"
        declared += [f"float each{n}{two};" for n in range(len(self.sums))]
        lines = list[str]()
        for k in names:
            lines.append(self.room.loaded(TOGETHER, f"all{k}[r][part]", self.states_at(k)))
        sums = list[str]()
        for n in range(len(self.sums)):
            sums.append(self.room.loaded(2, f"each{n}[r][part][n]", self.sums_at(n)))
        loads = self._each_part([*lines, *(self._each_two(sums) if sums else [])], self.split)
        return [*declared, *self.each_row(loads, inside)]

    def merge(self, inside: str) -> list[str]:
        """Print how the states of part after part are merged, and then their sums.

        It goes row by row, so that nothing parts the loads of one.
        """
        return [*self._hold(inside), *self.each_row(self._merged(), inside)]

    def _merged(self) -> list[str]:
        """Print the merge of row ``r``."""
        ahead = self.split if self._is_held else _AHEAD
        states = [*self.chain.no_states(), *self._each_part(self._merged_part(), ahead)]
        sums = []
        if self.sums:
            none = [f"{text('i')} = {text('(i + 1)')} = 0.0f;" for text in self.sums]
            sums += self._each_two(none)
            ahead = ahead if self._is_held else max(1, min(_AHEAD, _MOST_AHEAD // self._row_count))
            sums += self._each_part(self._added_sums(), ahead)
        return [*states, *sums]

    def _each_part(self, body: Sequence[str], ahead: int) -> list[str]:
        return CUDA.loop("part", self.split, [self.mine("part"), *body], unroll=ahead)

    def _loaded(self, name: str, count: int, held: str, at: str) -> list[str]:
        """Print the declaration of ``name``: words of row ``r`` of a part, loaded or ``held``."""
        if self._is_held:
            place = "[n]" if count == 2 else ""
            return [f"const float (&{name})[{count}] = {held}[r][part]{place};"]
        return [f"float {name}[{count}];", self.room.loaded(count, name, at)]

    def _load_states(self, wanted: Iterable[int]) -> list[str]:
        """Print the declarations of a part's states of row ``r``, as ``otherK``.

        All words that lie beside them are in ``heldN``.
        """
        wanted = list(wanted)
        lines = []
        for first in sorted({k // TOGETHER * TOGETHER for k in wanted}):
            lines += self._loaded(f"held{first}", TOGETHER, f"all{first}", self.states_at(first))
        return [*lines, *(f"const float other{k} = {held(k)};" for k in wanted)]

    def _merged_part(self) -> list[str]:
        return self.merged_states(self._load_states(self.left_states))

    @property
    def left_states(self) -> range:
        """The numbers of all words that a part has of a row."""
        return range(self._states + 1 + len(self.chain.placed))

    def merged_states(self, others: Sequence[str]) -> list[str]:
        """Print how the states of row ``r`` merge with those that the lines ``others`` declare."""
        chain, lines = self.chain, list(others)
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
            own, theirs = values
            lines.append(f"const float merged{k} = {taken(r.reducer, ' * '.join(own), theirs)};")
        lines += [f"state{k}[r] = merged{k};" for k in range(self._states)]
        return [*lines, "seen[r] |= has_other;"]

    def _merged_place(self, k: int, reducer: str) -> list[str]:
        """Print how the better of two values, and its place, is chosen."""
        place = self._states + 1 + self.chain.placed.index(k)
        return [
            f"const int at{k} = (int)tw::float_bits(other{place});",
            f"float merged{k} = state{k}[r];",
            f"tw_{reducer}(merged{k}, place{k}[r], other{k}, at{k});",
        ]

    def _added_sums(self) -> list[str]:
        """Print how a part's sums of row ``r`` are added.

        They are corrected from the part's own results to those of all parts.
        """
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
            factor = [f"factor{chain.scalings.index(correction)}"] if scaled else []
            added += self._loaded(f"two{n}", 2, f"each{n}", self.sums_at(n))
            for e in range(2):
                total = text(f"(i + {e})")
                added.append(f"{total} = {taken('sum', total, [f'two{n}[{e}]', *factor])};")
        return [*lines, *self._each_two(added)]


def held(k: int) -> str:
    """Return C text of a word of a row, of those that lie together in ``heldN``."""
    return f"held{k // TOGETHER * TOGETHER}[{k % TOGETHER}]"


def _power(scaling: Scaling, before: ThreadScope, now: ThreadScope) -> str:
    return now.power_of(scaling.function, change(scaling.exponent, before, now))


def _moved(
    r: ChainReduction, value: str, own: ThreadScope, now: ThreadScope, some: str
) -> Sequence[str]:
    """Return C texts whose product is a part's state, corrected to the results of both parts."""
    match r.correction:
        case Scaling():
            return value, _power(r.correction, own, now)
        case Series():
            moved = " + ".join([value, *series(r.correction, own, now)])
            return (f"({some} ? {moved} : {value})",)
    return (value,)
