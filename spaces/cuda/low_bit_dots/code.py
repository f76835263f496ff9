"""The CUDA C++ of a product with packed codes whose activations have 8 bits.

Quads of codes are the left operand of ``mma.sync`` with sums of 32 bits. Its right operand joins
activations of the same two steps of the depth. What zero points take away is a product of the sums
of activations, which one more instruction adds up for all columns.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import index
from tilewright.spaces.cuda.low_bit.decoding import Lines
from tilewright.spaces.cuda.low_bit.pairs import ByteDecoding
from tilewright.spaces.cuda.low_bit.sizes import COLUMNS
from tilewright.spaces.cuda.low_bit_ring.code import RingCode
from tilewright.spaces.cuda.low_bit_ring.ring import Ring
from tilewright.spaces.cuda.mma.code import INSTRUCTIONS
from tilewright.spaces.cuda.target import VECTOR_BYTES, WARP
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.low_bit.order import HALVES
from tilewright.spaces.low_bit.quads import BYTES, Quad, quads

JOINED = 0x5140
"""Picks the first bytes of two pairs, and then the second ones."""


@dataclass(frozen=True)
class ByteRing(Ring):
    """The rings of a block whose activations have 8 bits."""

    def fragments(self, half: int) -> Lines:
        """Load the right operands of the quads of the tile ``half`` of a stage, for all rows."""
        sizes = self.sizes
        rows, found = int(sizes.rows), quads(sizes.pairs.decoding.bits)
        lane, r = index("lane", WARP), index("r", int(sizes.rows) // COLUMNS)
        body: Lines = []
        for number, quad in enumerate(found):
            pairs = []
            for step in quad:
                within = step % (VECTOR_BYTES // 8) * 8
                place = self.place_of(r * COLUMNS + lane // 4, index(step * 8 // VECTOR_BYTES))
                place = place + half * rows * self.line + within + lane % 4 * 2
                pairs.append(f"tw::load_shared<u16>(x + {place.text})")
            body.append(
                f"b{half}[r][{number}] = tw::byte_permute({', '.join(pairs)}, {JOINED:#x});"
            )
        return [
            f"u32 b{half}[{rows // COLUMNS}][{len(found)}];",
            *CUDA.loop("r", rows // COLUMNS, body, unroll=True),
        ]


@dataclass(frozen=True)
class DotCode(RingCode):
    """The kernel whose tensor cores multiply bytes."""

    @cached_property
    def ring(self) -> Ring:
        """The way of codes and activations into shared memory."""
        return ByteRing(self.sizes, self.elements, self.bulk)

    @property
    def _bytes(self) -> ByteDecoding:
        pairs = self.sizes.pairs
        assert isinstance(pairs, ByteDecoding)
        return pairs

    @property
    def _quads(self) -> tuple[Quad, ...]:
        return quads(self._bytes.decoding.bits)

    @property
    def _taken(self) -> int | None:
        """The number that is subtracted of bytes, if it is known."""
        zero = self.sizes.known_zero
        return None if zero is None else int(zero) + self._bytes.above

    def _multiply(self) -> Lines:
        """Multiply a stage, some tiles of each warp at a time."""
        together, deep = self._number("interleave"), self._number("stage_depth")
        bits, each = self._bytes.decoding.bits, deep // self._parts
        lines = [line for tile in range(deep) for line in self.ring.fragments(tile)]
        body = [f"u32 w[{together}][{bits}];", f"i32 t[{together}][{self._count}][4];"]
        for part in range(self._parts):
            own = range(part * each, (part + 1) * each)
            lines += self._activation_sums(part, own)
            for tile in own:
                body += self._tile(tile, part, tile == own[0])
            body += self._over_tiles([*self._values(part, False), *self._correct(part)])
        return CUDA.block(*lines, *CUDA.loop("j", self._tiles, body, step=together, unroll=True))

    def _activation_sums(self, part: int, tiles: range) -> Lines:
        """Add up the activations of a part, multiplied by a zero point that is known."""
        if self._taken == 0:
            return []
        name, ones = f"all{part}", ", ".join([f"{BYTES:#x}u"] * 4)
        lines = [f"i32 {name}[{self._count}][4] = {{}};", f"const u32 ones[4] = {{{ones}}};"]
        summed = [
            line
            for tile in tiles
            for pair in range(len(self._quads) // 2)
            for line in CUDA.block(*self._product(name, "ones", tile, pair, f"{name}[r]"))
        ]
        if self._taken is not None:
            by = [f"{name}[r][e] *= {-self._taken};"]
            summed += CUDA.loop("e", 4, by, unroll=True)
        (declared, left), rows = lines, self._over_rows(summed)
        return [declared, *CUDA.block(left, *rows)]

    def _tile(self, tile: int, part: int, first: bool) -> Lines:
        """Multiply the tiles ``i`` of codes at a tile along the depth."""
        lines = self._over_tiles(self._words(tile))
        for pair in range(len(self._quads) // 2):
            before, start = "t[i][r]", list[str]()
            if first and pair == 0:
                known = self._taken not in (None, 0)
                before = f"all{part}[r]" if known else "none"
                start = [] if known else ["const i32 none[4] = {};"]
            added = self._over_rows(self._product("t[i]", "a", tile, pair, before))
            lines += self._over_tiles(["u32 a[4];", *self._quads_of(pair), *start, *added])
        return lines

    def _quads_of(self, pair: int) -> Lines:
        """Make both halves of two quads of the tile ``i``."""
        lines = [f"const u32 w{word} = w[i][{word}];" for word in range(self._bytes.decoding.bits)]
        for number, quad in enumerate(self._quads[2 * pair : 2 * pair + 2]):
            for half in range(HALVES):
                code = self._bytes.quad(quad, half)
                lines.append(f"a[{HALVES * number + half}] = {code};")
        return lines

    def _product(self, to: str, left: str, tile: int, pair: int, before: str) -> Lines:
        """Add the products of two quads and activations."""
        right = f"b{tile}[r][{2 * pair}], b{tile}[r][{2 * pair + 1}]"
        return [
            f"const u32 pair[2] = {{{right}}};",
            f"tw::{INSTRUCTIONS['int8']}({to}[r], {left}, pair, {before});",
        ]

    def _correct(self, part: int) -> Lines:
        """Add sums of a part of the depth to those of all: less their zero points, scaled."""
        body = []
        for number in range(4):
            half = number // 2
            sum, own = f"s[j + i][r][{number}]", f"t[i][r][{number}]"
            if self._taken is None:
                zero = f"((i32)zero{half} - {self._bytes.above})"
                own = f"({own} + {zero} * all{part}[r][{number}])"
            if "scale" in self._names:
                body.append(f"{sum} = tw::fused((float){own}, scale{half}, {sum});")
            else:
                body.append(f"{sum} += (float){own};")
        return self._over_rows(body)
