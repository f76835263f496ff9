"""The transposed copy of an 8-bit matrix: its keys run along memory, as wgmma of 8 bits requires.

A first kernel writes it to the workspace. Of sixteen keys, those are neighbours in it that one lane
has weights of: two of each eight. So the accumulators of one product are the operand of the next
one as they are, without a shuffle.

As task mappings: spatial(heads) * spatial(spans of 128 keys, pieces of columns) * spatial(32 lanes)
* repeat(four keys, the columns of a piece).
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from functools import cached_property
from math import gcd, prod

from tilewright.spaces.algebra.index import Index, total
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.chained_hopper.fetching.tiles import Boxes
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Read
from tilewright.spaces.workloads.array import Array

NAME = "tw.turned"
"""Name of the copy among the arrays of a launch; no array of a program has such a name."""
MIXED = 16
"""Keys among which some change places."""
SPAN = 128
"""Keys of a warp, four of each lane."""
WARPS = 4
"""Warps of a block of the kernel that copies."""
PIECE = 16
"""The most elements that a lane loads at a time."""
FOUR_KEYS = (0, 1, 8, 9)
"""The keys of a lane, counted from its first, in the order in which the copy has them."""


@dataclass(frozen=True)
class TransposedCopy:
    """The transposed copy of the one matrix of ``chained``."""

    chained: Chained

    @cached_property
    def read(self) -> Read:
        """The read of the matrix."""
        read = self.chained.in_place(self.chained.weighings[0].matrix)
        assert read
        return read

    @cached_property
    def offset(self) -> Index:
        """The place of an element in the matrix, as an index."""
        return self.chained.places[self.read].offset

    @cached_property
    def heads(self) -> tuple[Part, ...]:
        """The axes of heads that the matrix depends on."""
        return tuple(p for p in self.chained.batch if self.offset.coefficient(p.name))

    @property
    def keys(self) -> int:
        """Keys of a row of the copy, in whole groups of those that change places."""
        return int(round_up(self.chained.key.extent, MIXED))

    @cached_property
    def array(self) -> Array:
        """The copy: heads, columns, keys."""
        heads = (part.extent for part in self.heads)
        shape = (*heads, self.chained.width.extent, self.keys)
        dtype = self.chained.program.operand[self.read.name].dtype
        return Array(NAME, dtype, shape, tuple(range(len(shape))))

    def boxes(self, keys: int, columns: int) -> Boxes:
        """Return boxes of ``keys`` keys of ``columns`` columns; those beyond the width are
        zeros."""
        chained, strides = self.chained, self.array.strides
        parts = (*self.heads, chained.width, chained.key)
        place = total(zip((part.index for part in parts), strides, strict=True))
        along = replace(chained.key, extent=self.keys)
        return Boxes(self.array, place, along, ((chained.width, columns),), self.heads, keys)

    def why_not(self) -> str | None:
        """Return why there can be no such copy, in words; None if there can."""
        named = {part.name for part in (*self.heads, self.chained.width, self.chained.key)}
        if self.offset.without(named).terms:
            where = f"{self.read.name} is read at {self.offset.formula}"
            return f"{where}; copies are made of heads alone"
        return None

    # -- the kernel --------------------------------------------------------------------------------

    @property
    def _piece(self) -> int:
        """Neighbours along the width that are loaded at a time, a divisor of it."""
        width = self.chained.width
        if self.offset.coefficient(width.name) != 1:
            return 1
        return gcd(PIECE, width.extent, self.offset.without([width.name]).divisor)

    @property
    def _pieces(self) -> int:
        return self.chained.width.extent // self._piece

    @property
    def _spans(self) -> int:
        return int(ceil_div(self.keys, SPAN))

    @property
    def _warps(self) -> int:
        """Warps that have something to copy."""
        return prod(part.extent for part in self.heads) * self._spans * self._pieces

    @property
    def blocks(self) -> int:
        """Blocks of the launch, of :data:`WARPS` warps each."""
        return int(ceil_div(self._warps, WARPS))

    @cached_property
    def _access(self) -> Access[Chained]:
        names = {part.name: f"h{n}" for n, part in enumerate(self.heads)}
        own = {self.chained.key.name: "key", self.chained.width.name: "column"}
        return Access(self.chained, {**names, **own})

    @property
    def parameters(self) -> list[str]:
        """The C parameters: the matrix, and the copy in words of four keys."""
        kind, buffer = C_TYPES[self.array.dtype], self._access.buffers[self.read.name]
        return [f"const {kind} *__restrict__ {buffer}", "u32 *__restrict__ turned"]

    def lines(self) -> list[str]:
        """Print the kernel that copies."""
        access, pieces, spans = self._access, self._pieces, self._spans
        integer = access.integer
        body = [
            f"const {integer} head = warp / {pieces * spans};",
            f"const int span = warp / {pieces} % {spans}, piece = warp % {pieces};",
            *split("head", self.heads, access.names, integer),
            *self._load(),
            *self._store(),
        ]
        return [
            "tw::allow_launch();",
            "const int lane = threadIdx.x % 32;",
            f"const {integer} warp = ({integer})blockIdx.x * {WARPS} + threadIdx.x / 32;",
            *CUDA.when(f"warp < {self._warps}", body),
        ]

    def _load(self) -> list[str]:
        """Print the loads of a lane: the columns of a piece of four keys.

        Beyond the last key the last is loaded again, which is in the same tile.
        """
        kind, piece = C_TYPES[self.array.dtype], self._piece
        first = f"span * {SPAN} + lane / 4 * {MIXED} + lane % 4 * 2"
        key = f"first + n % 2 * {FOUR_KEYS[1]} + n / 2 * {FOUR_KEYS[2]}"
        load = [
            f"const int key = tw_least({key}, {self.chained.key.extent - 1});",
            f"tw::load_global<{piece}>(found[n], {self._access.address(self.read)});",
        ]
        return [
            f"{kind} found[4][{piece}];",
            f"const int column = piece * {piece}, first = {first};",
            *CUDA.loop("n", 4, load, unroll=True),
        ]

    def _store(self) -> list[str]:
        """Print the stores of a lane: one word of four keys for each column."""
        piece, words = self._piece, self.keys // 4
        row = f"(head * {self.chained.width.extent} + column + e) * {words}"
        four = " | ".join(f"(u32)found[{n}][e].bits << {8 * n}" for n in range(4))
        return [
            f"const int word = span * {SPAN // 4} + lane;",
            "#pragma unroll",
            f"for (int e = 0; e < {piece}; e++)",
            f"  if (word < {words})",
            f"    tw::store_global<u32>(turned + {row} + word, {four});",
        ]
