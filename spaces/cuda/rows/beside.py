"""Reads that are the same along a row: labels, scales, places, and what sums are shifted by.

They come to variables ``r0[k]``, ``r1[k]``, ... of the rows at once. A block that copies the
elements of tiles ahead reads these one tile ahead, too, to ``later0[k]``, ..., and waits for none.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.rows.context import Context
from tilewright.spaces.cuda.rows.long_sums import per_row
from tilewright.spaces.cuda.rows.source import Access, number_of
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class Beside:
    """Such reads of the kernel of ``context``; ``place`` has lines that say where the tile of a
    given name is."""

    context: Context
    place: Callable[[str], list[str]]

    def read(self) -> list[str]:
        """Read all for a tile."""
        return self._read(self.context.beside)

    def places(self) -> list[str]:
        """Read for a tile what says where others are."""
        return self._read([read for read in self.context.beside if self.context.is_integer(read)])

    def before(self, first: str) -> list[str]:
        """Read all for the first of many tiles, before the loop over them."""
        lines = [*self.place(first), *self._ahead]
        kinds = {read: C_TYPES[self._array(read).dtype] for read in self.context.beside}
        rows = self.context.at_once
        declared = [f"{kind} {self._later(read)}[{rows}] = {{}};" for read, kind in kinds.items()]
        return [*declared, "{", *indented(lines), "}"] if declared else []

    def come(self, stride: int, tiles: int) -> list[str]:
        """Take what was read for a tile, and read all for the tile that comes so many later, if
        there is one."""
        every = self.context.beside
        taken = [line for r in every for line in self._set(r, f"{self._later(r)}[k]")]
        lines = [*self.place("next"), *self._ahead]
        head = f"if (const int next = tile + {stride}; next < {tiles}) {{"
        return [*taken, head, *indented(lines), "}"] if taken else []

    def start(self, access: Access) -> str:
        """C text of where row ``k`` of an array starts."""
        return access.start(
            "row[k]", {read: f"{self._own(read)}[k]" for read in self.context.beside}
        )

    def _read(self, reads: Sequence[Read]) -> list[str]:
        lines = []
        for read in reads:
            start = self.start(self.context.access(read))
            lines += self._set(read, self._loaded(read, start))
        return lines

    def _set(self, read: Read, element: str) -> list[str]:
        """The variable of a tile, of an element as it is in memory."""
        context, name = self.context, self._own(read)
        kind = "int" if context.is_integer(read) else context.real
        value = number_of(element, self._array(read), context.real)
        lines = per_row(context.at_once, [f"{name}[k] = {value};"])
        return [f"{kind} {name}[{context.at_once}];", *lines]

    @property
    def _ahead(self) -> list[str]:
        """Read all as it is in memory: what turns it into numbers would wait for it."""
        context, lines = self.context, []
        found = {read: f"{self._later(read)}[k]" for read in context.beside}
        for read in context.beside:
            start = context.access(read).start("row[k]", found)
            lines += per_row(context.at_once, [f"{found[read]} = {self._loaded(read, start)};"])
        return lines

    def _loaded(self, read: Read, start: str) -> str:
        return f"tw::load_global({self.context.access(read).argument} + {start})"

    def _array(self, read: Read) -> Array:
        return self.context.access(read).array

    def _own(self, read: Read) -> str:
        return f"r{self.context.name(read)}"

    def _later(self, read: Read) -> str:
        return f"later{self.context.name(read)}"
