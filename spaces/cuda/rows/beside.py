"""Reads that are the same for all elements of a row: labels, scales, indices, offsets.

Their values go to variables ``r0[k]``, ``r1[k]``, ... for all rows ``k`` that a thread has at once.
A block that copies the elements of tiles ahead also reads these one tile ahead, to ``later0[k]``,
..., so that nothing waits for them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.rows.context import Context
from tilewright.spaces.cuda.rows.long_sums import per_row
from tilewright.spaces.cuda.rows.source import Access, number_of
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class Beside:
    """The code of these reads in the kernel of ``context``.

    ``place`` returns lines that declare where the tile of a given C name lies.
    """

    context: Context
    place: Callable[[str], list[str]]

    def read(self) -> list[str]:
        """Print how all of them are read for a tile."""
        return self._read(self.context.beside)

    def places(self) -> list[str]:
        """Print how those of whole numbers are read, which say where other arrays are read."""
        return self._read([read for read in self.context.beside if self.context.is_integer(read)])

    def before(self, first: str) -> list[str]:
        """Print how all are read for the tile ``first``, before the loop over tiles."""
        lines = [*self.place(first), *self._ahead]
        kinds = {read: C_TYPES[self._array(read).dtype] for read in self.context.beside}
        rows = self.context.at_once
        declared = [f"{kind} {self._later(read)}[{rows}] = {{}};" for read, kind in kinds.items()]
        return [*declared, *CUDA.block(*lines)] if declared else []

    def come(self, stride: int, tiles: str) -> list[str]:
        """Print how a tile takes what was read for it, and reads for the tile ``stride`` later.

        Nothing is read if that tile is not before ``tiles``, C text of their number.
        """
        every = self.context.beside
        taken = [line for r in every for line in self._set(r, f"{self._later(r)}[k]")]
        lines = [*self.place("next"), *self._ahead]
        test = f"const int next = tile + {stride}; next < {tiles}"
        return [*taken, *CUDA.when(test, lines)] if taken else []

    def start(self, access: Access) -> str:
        """Return C text of where row ``k`` of an array starts."""
        return access.start(
            "row[k]", {read: f"{self._own(read)}[k]" for read in self.context.beside}
        )

    def pointers(self) -> list[str]:
        """Print pointers to where the rows of operands start."""
        context, lines = self.context, []
        for read, access in context.accesses.items():
            if read in context.common:
                continue
            name, count = f"from{context.name(read)}", context.rows_of(read)
            lines.append(f"const {C_TYPES[access.array.dtype]} *{name}[{count}];")
            lines += per_row(count, [f"{name}[k] = {access.argument} + {self.start(access)};"])
        return lines

    def _read(self, reads: Sequence[Read]) -> list[str]:
        lines = []
        for read in reads:
            start = self.start(self.context.access(read))
            lines += self._set(read, self._loaded(read, start))
        return lines

    def _set(self, read: Read, element: str) -> list[str]:
        """Print the declaration of a read's variable, converted from ``element`` as it is in
        memory."""
        context, name = self.context, self._own(read)
        kind = "int" if context.is_integer(read) else context.real
        value = number_of(element, self._array(read), context.real)
        lines = per_row(context.at_once, [f"{name}[k] = {value};"])
        return [f"{kind} {name}[{context.at_once}];", *lines]

    @property
    def _ahead(self) -> list[str]:
        """The lines that read all as it is in memory: a conversion would wait for the load."""
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
