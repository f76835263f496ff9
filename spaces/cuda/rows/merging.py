"""How the parts of a row come together: lanes by shuffles, warps through shared memory, blocks of a
cluster through each other's; all through shared memory where lanes are those of other rows.
Afterwards every thread of the row has the whole states."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from spaces.algebra.mapping_emit import indented
from spaces.cuda.rows.reducers import States
from spaces.cuda.target import WARP

SLOT = 8
"""Bytes of shared memory for a variable."""


def per_row(rows: int, lines: Sequence[str]) -> list[str]:
    """The lines for each row ``k`` that a thread has at once."""
    head = ["#pragma unroll", f"for (int k = 0; k < {rows}; k++) {{"]
    return [*head, *indented(lines), "}"] if lines else []


@dataclass(frozen=True)
class _Shuffle:
    """The variable of the lane whose number differs in ``mask``."""

    mask: int

    def __call__(self, kind: str, name: str) -> str:
        return f"tw::shuffle_xor({name}, {self.mask})"


@dataclass(frozen=True)
class Merging:
    """Merges ``states`` over ``row_threads`` threads in each of ``cluster`` blocks of
    ``block_rows`` rows; ``place`` is where its slots begin in shared memory. ``across`` says
    whether neighbouring threads are of different rows.
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
        """Shared memory that it takes."""
        variables = len(self.states.variables) * self.states.rows
        if self.across:
            parts = self.row_threads * self.block_rows if self.row_threads > 1 else 0
        else:
            parts = (self.warps if self.warps > 1 else 0) + (self.cluster > 1)
        return variables * parts * SLOT

    def lines(self) -> list[str]:
        """All of it."""
        if self.across:
            return self._across() if self.row_threads > 1 else []
        found = self._by_shuffles(min(self.row_threads, WARP))
        if self.warps > 1:
            found += self._through_shared()
        if self.cluster > 1:
            found += self._through_cluster()
        return found

    def _across(self) -> list[str]:
        """Every thread merges the parts of its row, one after the other."""
        rows, wide = self.block_rows, self.row_threads * self.block_rows
        place = {n: at for _, n, at in self._places(self.place, wide, f"q * {rows} + group")}

        def part(kind: str, name: str) -> str:
            return f"tw::load_shared<{kind}>(shared + {place[name]})"

        return [
            *self._stored(self.place, wide, f"part * {rows} + group"),
            "tw::sync_block();",
            *self._each(
                "{name} = tw::load_shared<{kind}>(shared + {at});", (self.place, wide, "group")
            ),
            f"for (int q = 1; q < {self.row_threads}; q++) {{",
            *indented(per_row(self.states.rows, self.states.merge(part))),
            "}",
        ]

    def _by_shuffles(self, lanes: int) -> list[str]:
        """Lanes whose numbers differ in one bit below ``lanes`` merge, bit after bit."""
        lines: list[str] = []
        mask = 1
        while mask < lanes:
            lines += per_row(self.states.rows, self.states.merge(_Shuffle(mask)))
            mask *= 2
        return lines

    def _through_shared(self) -> list[str]:
        return [
            f"if (threadIdx.x % {WARP} == 0) {{",
            *indented(self._stored(self.place, self.warps, f"threadIdx.x / {WARP}")),
            "}",
            "tw::sync_block();",
            *self._each(
                "{name} = tw::load_shared<{kind}>(shared + {at});",
                (self.place, self.warps, f"threadIdx.x % {self.warps}"),
            ),
            *self._by_shuffles(self.warps),
        ]

    def _through_cluster(self) -> list[str]:
        count = len(self.states.variables) * self.states.rows
        place = self.place + (count * self.warps * SLOT if self.warps > 1 else 0)
        words = {"float": "tw::bits_float({})", "int": "(int){}"}
        lines = []
        for kind, name, at in self._places(place, 1, "0"):
            remote = f"tw::load_remote(tw::map_shared(shared + {at}, rank))"
            lines.append(f"{name} = {words[kind].format(remote)};")
        return [
            "if (threadIdx.x == 0) {",
            *indented(self._stored(place, 1, "0")),
            "}",
            "tw::sync_cluster();",
            "{",
            f"  const u32 rank = threadIdx.x % {self.cluster};",
            *indented(per_row(self.states.rows, lines)),
            "}",
            *self._by_shuffles(self.cluster),
        ]

    def _stored(self, place: int, wide: int, column: str) -> list[str]:
        return self._each("tw::store_shared(shared + {at}, {name});", (place, wide, column))

    def _each(self, line: str, where: tuple[int, int, str]) -> list[str]:
        lines = [line.format(kind=k, name=n, at=at) for k, n, at in self._places(*where)]
        return per_row(self.states.rows, lines)

    def _places(self, place: int, wide: int, column: str) -> list[tuple[str, str, str]]:
        """Type, variable of row ``k`` and offset in shared memory of each variable, in an array
        that is ``wide`` slots wide."""
        rows = self.states.rows
        return [
            (
                kind,
                f"{name}[k]",
                f"{place + n * rows * wide * SLOT} + (k * {wide} + {column}) * {SLOT}",
            )
            for n, (kind, name) in enumerate(self.states.variables)
        ]
