"""Several clusters share the depth of a Hopper tile; the last to come finishes the whole sums.

Each warpgroup adds its sums to a workspace by atomics and takes a ticket; the one with the last
ticket reads the whole sums, leaves zeros and goes on. Sums lie as in registers, the threads' side
by side.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from spaces.cuda.unrolled import unrolled
from spaces.index import Index, index
from spaces.integers import round_up
from spaces.layout import Layout, row_major
from spaces.mapping import repeat

THREADS = 128
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
        sync = f"tw::sync_named(1 + group, {THREADS});"
        return [
            f"const int member = (int)({tile}) * {self.members} + {member};",
            "u32 *const ticket = (u32 *)workspace + member;",
            f"float *const whole = (float *)(workspace + {self._ticket_bytes});",
            *self._each("d", lambda at, mine: [f"tw::atomic_add({at}, {mine});"]),
            # every thread's additions come before the ticket, which one thread takes for all
            "tw::fence_global();",
            sync,
            f"if (thread == 0) tw::store_shared({slot}, tw::take_ticket(ticket));",
            sync,
            f"if (tw::load_shared<u32>({slot}) == {self.parts - 1}) {{",
            "  tw::fence_global();",
            *(f"  {line}" for line in self._each("r", _take)),
            "  if (thread == 0) tw::store_global(ticket, 0u);",
            *(f"  {line}" for line in body),
            "}",
        ]

    def _each(self, prefix: str, line: Callable[[str, str], list[str]]) -> list[str]:
        """Lines of ``line(place in the workspace, sum)`` for each sum of a thread."""

        def body(indices: tuple[Index, ...]) -> list[str]:
            block, register = indices
            place = self._layout.index([index("member"), block, register, index("thread", THREADS)])
            return line(f"whole + {place.text}", f"sums[{block.text}][{register.text}]")

        return unrolled(repeat(self.blocks, self.registers // 8) * repeat(1, 8), 0, body, prefix)

    @property
    def _layout(self) -> Layout:
        return row_major(self.tiles * self.members, self.blocks, self.registers, THREADS)

    @property
    def _ticket_bytes(self) -> int:
        return int(round_up(4 * self.tiles * self.members, _ALIGNMENT))


def _take(at: str, mine: str) -> list[str]:
    return [f"{mine} = tw::load_global({at});", f"tw::store_global({at}, 0.0f);"]
