"""Copies of an operand's tiles from global to shared memory, by all threads of a block together.

Threads move vectors along the operand's unit stride, so that global accesses are wide and
coalesced; a layout says where a vector goes in shared memory. There are two ways: ``cp.async``
straight into shared memory, or through registers, where elements can be converted or transposed.
Elements outside of the operand become zero.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import gcd

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.unrolled import THREAD, Body, unrolled
from tilewright.spaces.dtypes import dtype

Ends = tuple[int | str | None, int | str | None]
"""The ends of what may be read along (slow, fast), in C; None where no tile reaches that far."""


@dataclass(frozen=True)
class BlockCopy(ABC):
    """Copies of tiles of ``tile`` = (slow, fast) elements of the array ``name``.

    ``shared`` is the place of each element of a tile within a stage of shared memory, which holds
    ``shared_dtype`` elements. Offsets into the operand are of C type ``integer``. ``vector``
    elements move at a time; they divide the fast extent of the tile.
    """

    name: str
    dtype: str
    tile: tuple[int, int]
    threads: int
    vector: int
    shared: Layout
    shared_dtype: str
    integer: str

    # -- where tiles come from -----------------------------------------------------------------

    @property
    @abstractmethod
    def extents(self) -> tuple[int, int]:
        """Extents of the operand along (slow, fast)."""

    @property
    def ends(self) -> Ends:
        """The ends of the operand, along which tiles do not divide it."""
        slow, fast = (e if e % t else None for e, t in zip(self.extents, self.tile, strict=True))
        return slow, fast

    @property
    @abstractmethod
    def step(self) -> int:
        """The distance by which :meth:`advance` goes on from a tile to the next."""

    @abstractmethod
    def start(self, slow: str, fast: str) -> list[str]:
        """Print how the copy is set to the first tile, whose corner is at (slow, fast)."""

    @abstractmethod
    def advance(self, step: str | None = None) -> list[str]:
        """Print how the copy goes on to the next tile; or by ``step`` elements, in C."""

    @abstractmethod
    def _address(self, indices: tuple[Index, ...]) -> str:
        """Return C text of the address of a vector of the tile."""

    def _located(self, indices: tuple[Index, ...]) -> list[str]:
        """Return lines that the address or the test of a vector needs before it."""
        return []

    def _within(self, indices: tuple[Index, ...]) -> list[str]:
        """Return C tests that a vector exists that lies before the ends of the operand."""
        return []

    # -- how they are moved --------------------------------------------------------------------

    @property
    def can_be_asynchronous(self) -> bool:
        """True if ``cp.async`` can copy: 4, 8 or 16 bytes that stay together and unconverted."""
        sized = self.vector * dtype(self.dtype).bytes in (4, 8, 16)
        return sized and self._stays_whole and self.dtype == self.shared_dtype

    @property
    def stage_bytes(self) -> int:
        """Bytes of one tile in shared memory."""
        return self.shared.size * dtype(self.shared_dtype).bytes

    @property
    def registers(self) -> int:
        """Elements that one thread holds between :meth:`load` and :meth:`store`."""
        return self._turns[0] * self._turns[1] * self.vector

    def declare(self) -> list[str]:
        """Print the declaration of the registers that a tile passes through."""
        return [f"{C_TYPES[self.dtype]} {self.name}_held[{self.registers}];"]

    def copy(self, stage: str, slow: str, fast: str, ends: Ends | None = None) -> list[str]:
        """Print how asynchronous copies of the tile are started.

        The tile's corner is at (slow, fast); it goes to the address ``stage``. ``ends`` are by
        default the operand's, where tiles do not divide it.
        """
        size = self.vector * dtype(self.dtype).bytes

        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices[0], indices[1] * self.vector
            inside = self._inside(slow, fast, i, j, self._within(indices), ends)
            count = f", {inside} ? {size} : 0" if inside else ""
            to = f"{stage} + {self._place(i, j)}"
            return [
                *self._located(indices),
                f"tw::cp_async<{size}>({to}, {self._address(indices)}{count});",
            ]

        return self._each(body)

    @property
    def turns(self) -> int:
        """Vectors of a tile that one thread moves."""
        return self._turns[0] * self._turns[1]

    def load(
        self, slow: str, fast: str, ends: Ends | None = None, turn: int | None = None
    ) -> list[str]:
        """Print how the tile is loaded into registers: every vector, or only that of one ``turn``.

        The tile's corner is at (slow, fast). ``ends`` are by default the operand's, where tiles do
        not divide it.
        """
        zero = f"{C_TYPES[self.dtype]}{{}}"

        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices[0], indices[1] * self.vector
            held = self._held(indices)
            inside = self._inside(slow, fast, i, j, self._within(indices), ends)
            located = self._located(indices)
            load = (
                f"tw::load_global<{self.vector}>({self.name}_held + {held}, "
                f"{self._address(indices)});"
            )
            if not inside:
                return [*located, load]
            clear = [f"{self.name}_held[{(held + e).text}] = {zero};" for e in range(self.vector)]
            return [*located, f"if ({inside}) {{", f"  {load}", "} else {", *clear, "}"]

        return self._each(body, turn)

    def store(self, stage: str, turn: int | None = None) -> list[str]:
        """Print how registers go to the address ``stage``: the whole tile, or the vector of a
        ``turn``."""

        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices[0], indices[1] * self.vector
            held = self._held(indices)
            elements = [
                self._converted(f"{self.name}_held[{(held + e).text}]") for e in range(self.vector)
            ]
            if not self._stays_whole or self.vector == 1:
                return [
                    f"tw::store_shared({stage} + {self._place(i, j + e)}, {element});"
                    for e, element in enumerate(elements)
                ]
            to = f"{stage} + {self._place(i, j)}"
            if self.dtype == self.shared_dtype:
                return [f"tw::store_shared<{self.vector}>({to}, {self.name}_held + {held});"]
            kind = C_TYPES[self.shared_dtype]
            return [
                "{",
                f"  const {kind} converted[{self.vector}] = {{{', '.join(elements)}}};",
                f"  tw::store_shared<{self.vector}>({to}, converted);",
                "}",
            ]

        return self._each(body, turn)

    # -- who moves what ------------------------------------------------------------------------

    @property
    def mapping(self) -> TaskMapping:
        """The mapping from threads to vectors of the tile; those past the tile do not exist."""
        (slow_turns, fast_turns), (slow_threads, fast_threads) = self._turns, self._thread_grid
        return repeat(slow_turns, fast_turns) * spatial(slow_threads, fast_threads)

    @property
    def _thread_grid(self) -> tuple[int, int]:
        fast = gcd(self.tile[1] // self.vector, self.threads)
        return self.threads // fast, fast

    @property
    def _turns(self) -> tuple[int, int]:
        slow, fast = self._thread_grid
        return int(ceil_div(self.tile[0], slow)), self.tile[1] // self.vector // fast

    @cached_property
    def _stays_whole(self) -> bool:
        """True if the elements of a vector are also neighbours in shared memory."""
        places = [self.shared.offset(0, e) for e in range(self.vector)]
        return places == list(range(places[0], places[0] + self.vector))

    def _each(self, body: Body, turn: int | None = None) -> list[str]:
        extents = (self.tile[0], self.tile[1] // self.vector)
        if turn is None:
            return unrolled(self.mapping, THREAD, body, f"{self.name}_", extents, self.integer)
        turns = zip(divmod(turn, self._turns[1]), self._thread_grid, strict=True)
        return spatial(*self._thread_grid).emit(
            THREAD,
            body,
            extents=extents,
            base=[number * threads for number, threads in turns],
            integer=self.integer,
            language="cuda",
        )

    def _held(self, indices: tuple[Index, ...]) -> Index:
        slow, fast = self._thread_grid
        turn = indices[0] // slow * self._turns[1] + indices[1] // fast
        return turn * self.vector

    def _place(self, i: Index, j: Index) -> str:
        offset = self.shared.index([i, j]) * dtype(self.shared_dtype).bytes
        return str(offset)

    def _inside(
        self,
        slow: str,
        fast: str,
        i: Index,
        j: Index,
        within: Sequence[str],
        ends: Ends | None = None,
    ) -> str:
        """Return the C test that a vector lies before the ends and is ``within``; empty if all
        do."""
        tests = [
            f"{(index(origin) + within).text} < {end}"
            for origin, within, end in zip((slow, fast), (i, j), ends or self.ends, strict=True)
            if end is not None
        ]
        return " && ".join([*tests, *within])

    def _converted(self, element: str) -> str:
        if self.dtype == self.shared_dtype:
            return element
        if self.shared_dtype == "float32":
            return f"tw::to_float({element})"
        return f"({C_TYPES[self.shared_dtype]}){element}"


def widest_vector(tile_fast: int, run: int, element_bytes: int) -> int:
    """Return the elements that one access of at most 16 bytes can move.

    A power of two that divides the fast extent of the tile and the operand's ``run``, so that all
    accesses are aligned.
    """
    return gcd(16 // element_bytes, gcd(tile_fast, run))
