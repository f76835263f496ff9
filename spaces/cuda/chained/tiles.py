"""Tiles of a chained kernel's operands, from memory or computed, to shared memory.

An array that lies along the tile goes by ``cp.async``, each vector from wherever its row or key has
it: pages of a table of keys are no different. Anything else (other dtypes, rotations, scales) is
computed element by element on the way.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from math import gcd

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.chains.ends import End
from tilewright.spaces.cuda.chains.scopes import ThreadScope
from tilewright.spaces.cuda.mma.fragments import swizzled_tile
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression, Read

PIECE = 16
"""Bytes that move at a time."""
LEAST = 4
"""The fewest bytes that ``cp.async`` moves."""


@dataclass(frozen=True)
class Side:
    """One side of a tile: ``extent`` points of all up to ``end``, from ``first`` on, which is C.

    Points are numbered through all axes. Those beyond the last are zeros if ``ends``, else the last
    again; there are none if tiles are ``whole``. Points before the first and from the second of
    ``within`` on, which are C, are zeros.
    """

    end: End
    extent: int
    first: str
    ends: bool
    whole: bool = False
    within: tuple[str, str] | None = None

    @property
    def parts(self) -> tuple[Part, ...]:
        """The axes."""
        return self.end.parts

    def names(self, prefix: str) -> dict[str, str]:
        """Return the C variables of the axes."""
        return {part.name: f"{prefix}{i}" for i, part in enumerate(self.parts)}

    def declare(self, index: str, prefix: str, integer: str) -> list[str]:
        """Print the declarations of the axes of the point ``index`` of the tile."""
        number = f"{self.first} + {index}"
        number = number if self.whole else f"tw_least({number}, {self.end.last})"
        names = self.names(prefix)
        if len(self.parts) == 1:
            return [f"const {integer} {name} = {number};" for name in names.values()]
        return [f"const {integer} {prefix} = {number};", *split(prefix, self.parts, names, integer)]


@dataclass(frozen=True)
class SharedTile:
    """A tile of ``value`` in elements of ``dtype``, its side ``fast`` contiguous.

    ``threads`` threads copy it, of which ``thread`` is one, in C.
    """

    access: Access[RowsAndKeys]
    value: Expression
    slow: Side
    fast: Side
    dtype: str
    threads: int
    thread: str = THREAD

    @property
    def element_bytes(self) -> int:
        """Bytes of an element."""
        return dtype(self.dtype).bytes

    @property
    def piece(self) -> int:
        """The most elements that move at a time."""
        return PIECE // self.element_bytes

    @property
    def layout(self) -> Layout:
        """The place of each element, swizzled."""
        return swizzled_tile(self.slow.extent, self.fast.extent, self.element_bytes)

    @property
    def bytes(self) -> int:
        """Bytes of the tile."""
        return self.slow.extent * self.fast.extent * self.element_bytes

    @cached_property
    def vector(self) -> int:
        """Elements that ``cp.async`` can move at a time; 0 if it cannot."""
        if not isinstance(self.value, Read) or self.fast.within:
            return 0
        if self.access.view.program.operand[self.value.name].dtype != self.dtype:
            return 0
        found = self._together(self.value)
        return found if found * self.element_bytes >= LEAST else 0

    def _together(self, read: Read) -> int:
        """Return how many entries of a read lie side by side along the fast side, up to a piece.

        It divides a piece, and holds wherever the read begins.
        """
        if len(self.fast.parts) != 1:
            return 0
        part, place = self.fast.parts[0], self.access.view.places[read].offset
        if place.step(part.name) != 1:
            return 0
        every = self.fast.end
        many = every.each if every.is_open else every.most
        return gcd(self.piece, many, place.without([part.name]).divisor)

    def copy(self, stage: str) -> list[str]:
        """Print how copies of the tile to the address ``stage`` are started."""
        fast_pieces = self.fast.extent // self._width
        fast = gcd(fast_pieces, self.threads)
        slow = self.threads // fast
        turns = ceil_div(self.slow.extent, slow), fast_pieces // fast
        extents = (self.slow.extent, fast_pieces)

        def body(indices: tuple[Index, ...]) -> list[str]:
            return CUDA.block(*self._piece(stage, *indices))

        mapping = repeat(*turns) * spatial(slow, fast)
        return unrolled(mapping, self.thread, body, "turn", extents)

    @property
    def _width(self) -> int:
        return self.vector or self.piece

    def _piece(self, stage: str, i: Index, j: Index) -> list[str]:
        """Print how the vector ``j`` of row ``i`` is copied."""
        first = j * self._width
        to = f"{stage} + {self.layout.index([i, first]) * self.element_bytes}"
        slow = self.slow.declare(i.text, "s", self.access.integer)
        known = self.access.knowing(self.slow.names("s"))
        if not self.vector:
            return [*slow, *self._computed(known, to, i, first)]
        assert isinstance(self.value, Read)
        fast = self.fast.declare(first.text, "t", self.access.integer)
        address = known.knowing(self.fast.names("t")).address(self.value)
        size = self.vector * self.element_bytes
        test = self._inside(i, first.text)
        count = f", {test} ? {size} : 0" if test else ""
        return [*slow, *fast, f"tw::cp_async<{size}>({to}, {address}{count});"]

    def _computed(self, known: Access[RowsAndKeys], to: str, i: Index, first: Index) -> list[str]:
        body = self.fast.declare(f"{first.text} + v", "t", self.access.integer)
        lines, pieces = self._pieces(known, first)
        leaf = known.knowing(self.fast.names("t")).leaf
        known_numbers = magnitudes(known.view.program)
        scope = ThreadScope(
            "x", lambda node: pieces.get(node) or leaf(node), body, magnitudes=known_numbers
        )
        value = scope.text(self.value)
        test = self._inside(i, f"{first.text} + v")
        value = f"{test} ? {value} : 0.0f" if test else value
        kind = C_TYPES[self.dtype]
        body.append(f"piece[v] = tw::from_float<{kind}>({value});")
        return [
            *lines,
            f"{kind} piece[{self.piece}];",
            *CUDA.loop("v", self.piece, body, unroll=True),
            f"tw::store_shared<{self.piece}>({to}, piece);",
        ]

    def _pieces(
        self, known: Access[RowsAndKeys], first: Index
    ) -> tuple[list[str], dict[Expression, str]]:
        """Return lines that load whole pieces of arrays at once, and C text of each one's ``v``-th
        entry."""
        program, lines, found = known.view.program, list[str](), dict[Expression, str]()
        reads = (n for n in self.value.walk() if isinstance(n, Read) and n in known.view.places)
        for read in dict.fromkeys(reads):
            if self._together(read) != self.piece:
                continue
            name, element = f"raw{len(found)}", program.operand[read.name].element
            address = known.knowing({self.fast.parts[0].name: "begin"}).address(read)
            lines += [
                f"{C_TYPES[element.name]} {name}[{self.piece}];",
                f"tw::load_global<{self.piece}>({name}, {address});",
            ]
            found[read] = f"(float){name}[v]" if element.is_integer else f"tw::to_float({name}[v])"
        if lines:
            begin = f"tw_least({self.fast.first} + {first.text}, {self.fast.end.most - self.piece})"
            lines.insert(0, f"const {self.access.integer} begin = {begin};")
        return lines, found

    def _inside(self, i: Index, j: str) -> str:
        tests = []
        for side, point in ((self.slow, i.text), (self.fast, j)):
            if side.within:
                low, high = side.within
                tests += [f"{side.first} + {point} >= {low}", f"{side.first} + {point} < {high}"]
            elif side.ends:
                tests.append(f"{side.first} + {point} < {side.end.count}")
        return " && ".join(tests)
