"""Products with packed codes by ``mma.sync``, whose left operand they are.

A lane's words of a tile of codes are its fragments of four steps of the depth. They are decoded in
registers, a pair at a time. Activations are moved as they are, the next chunk of the depth while
one is multiplied, and leave shared memory by ``ldmatrix``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cuda.blocks.unrolled import unrolled
from tilewright.spaces.cuda.low_bit.code import CodedCode
from tilewright.spaces.cuda.low_bit.decoding import Lines
from tilewright.spaces.cuda.low_bit.pairs import PairDecoding
from tilewright.spaces.cuda.low_bit.sizes import ACTIVATION, COLUMNS, FLOAT
from tilewright.spaces.cuda.mma.code import INSTRUCTIONS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, Fragments, multiply_add, swizzled_tile
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Read
from tilewright.spaces.low_bit.order import DEPTH, HALVES, slots

PIECE = 8
"""Activations that are copied at once."""
QUARTERS = tuple((step, half) for step in range(2) for half in range(HALVES))
"""Steps of 8 of the depth and halves of the rows of the left operand's registers."""


@dataclass(frozen=True)
class MatrixCode(CodedCode):
    """The kernel whose warps multiply on tensor cores."""

    @property
    def _each(self) -> str:
        return f"[{self._number('warp_tiles')}][{self._rows // COLUMNS}][4]"

    @property
    def _has_zero(self) -> bool:
        return self.product.zero is not None and self.decoding.zero is None

    @property
    def _zeros_above(self) -> float:
        return 0.0

    @property
    def _kind(self) -> str:
        activation = self.product.activation
        assert isinstance(activation, Read)
        return self.product.program.operand[activation.name].dtype

    @cached_property
    def pairs(self) -> PairDecoding:
        """The way from words to pairs of values."""
        return PairDecoding(self.decoding, self._kind)

    # -- activations -------------------------------------------------------------------------------

    @cached_property
    def fragments(self) -> Fragments:
        """The fragments of the activations of a tile's depth."""
        rows = int(self.sizes.laid_rows)
        tile = swizzled_tile(rows, DEPTH, ACTIVATION)
        return Fragments("b", 1, (1, 1), rows // FRAGMENT, tile, True, ACTIVATION, "lane")

    @property
    def _panel(self) -> int:
        """Bytes of the activations of a tile's depth."""
        return int(self.sizes.laid_rows) * DEPTH * ACTIVATION

    def _chunks(self) -> Lines:
        """Chunks take turns in two places."""
        step, size = self._depth, self._depth * self._panel
        turn = "const u32 other = now; now = next; next = other;"
        again = int(self.sizes.share) > step
        ahead = CUDA.when(f"chunk + {step} < last", self._copy(f"(chunk + {step})", "next"))
        return [
            f"u32 now = shared{f', next = shared + {size}' if again else ''};",
            *self._copy("first", "now"),
            "tw::cp_async_commit();",
            f"for (int chunk = first; chunk < last; chunk += {step}) {{",
            f"  const int end = chunk + {step} < last ? chunk + {step} : last;",
            *(indented(ahead) if again else ()),
            "  tw::cp_async_commit();",
            "  tw::cp_async_wait<1>();",
            "  tw::sync_block();",
            *indented(self._stream()),
            *([f"  {turn}", "  tw::sync_block();"] if again else ()),
            "}",
        ]

    def _copy(self, chunk: str, to: str) -> Lines:
        """Begin to copy the activations from a tile of the depth on; zeros stand for what is
        beyond the borders, and for rows that fragments have more."""
        rows, tiles = int(self.sizes.laid_rows), self._depth
        pieces = DEPTH // PIECE
        n = index("n", rows * tiles * pieces)
        row, tile, piece = n // (tiles * pieces), n // pieces % tiles, n % pieces
        place = tile * self._panel + self.fragments.shared.index([row, piece * PIECE]) * ACTIVATION
        activation, terms = self.product.activation, self.product.terms
        assert isinstance(activation, Read)
        there = f"row < row0 + {self._rows} && row < {self.product.row_count} && depth < deep"
        body = [
            f"const i64 row = row0 + {row.text};",
            f"const i64 depth = (i64){chunk} * {DEPTH} + {(n % (tiles * pieces) * PIECE).text};",
            f"const i64 deep = tw_whole_min((i64)last * {DEPTH}, {terms});",
            f"const bool there = {there};",
            f"tw::cp_async<{PIECE * ACTIVATION}>({to} + {place.text}, "
            f"{self.elements.names[activation.name]} + (there ? row * {terms} + depth : 0), "
            f"there ? {PIECE * ACTIVATION} : 0);",
        ]
        return self._sums.strided(rows * tiles * pieces, body)

    # -- products ----------------------------------------------------------------------------------

    def _multiply(self) -> Lines:
        """Multiply a tile's depth, part by part; the last tile may have fewer."""
        size = DEPTH // self.sizes.parts
        there = self.product.terms % DEPTH or DEPTH
        lines = [f"const u32 x = now + (k - chunk) * {self._panel};"]
        for part in range(self.sizes.parts):
            body = self._part(part)
            lines += body if part * size < there else self._where_whole(body)
        return lines

    def _part(self, part: int) -> Lines:
        """Return the lines that multiply a part of the depth, after those of the values that it
        shares."""
        steps = DEPTH // FRAGMENT // self.sizes.parts
        lines = [*self._shared(part), *self._shared_pairs()]
        if self._late_parts:
            lines.append(f"float t{self._each} = {{}};")
        for step in range(part * steps, (part + 1) * steps):
            lines += self._step(step)
        if self._late_parts:
            for tile, half in self._halves():
                own = [f"[{tile}][r][{2 * half + row}]" for row in range(2)]
                scale = f"scale{tile}_{half}"
                added = (f"s{each} = tw::fused(t{each}, {scale}, s{each});" for each in own)
                lines += self._over_sums(*added)
        return CUDA.block(*lines)

    def _shared_pairs(self) -> Lines:
        """Declare zero points and scales of a part as pairs."""
        lines, kind = [], self.pairs.c_type
        for tile, half in self._halves():
            if self._has_zero:
                zero = f"-zero{tile}_{half}"
                lines.append(f"const u32 z{tile}_{half} = tw::pack2<{kind}>({zero}, {zero});")
            if self._is_early:
                scale = f"scale{tile}_{half}"
                lines.append(f"const u32 m{tile}_{half} = tw::pack2<{kind}>({scale}, {scale});")
        return lines

    def _step(self, step: int) -> Lines:
        """Return the lines that multiply 16 of the depth."""
        count, sums = self._rows // COLUMNS, "t" if self._late_parts else "s"
        lines = [f"u32 b[{self.fragments.count}][4];", *self.fragments.load("x", index(step))]
        for tile in range(self._number("warp_tiles")):

            def add(indices: Sequence[Index], tile: int = tile) -> Lines:
                total = f"{sums}[{tile}][{indices[1].text}]"
                return multiply_add(INSTRUCTIONS[self._kind], total, ("a", "b"), indices)

            added = unrolled(repeat(1, count), 0, add, "n")
            lines += CUDA.block(*self._left(tile, step), *added)
        return CUDA.block(*lines)

    def _left(self, tile: int, step: int) -> Lines:
        """Decode the fragment ``a`` of a tile's step: rows of both halves, then the next 8 of the
        depth."""
        places = [(half, slots(self.decoding.bits)[2 * step + i][half]) for i, half in QUARTERS]
        words = sorted({piece.word for _, slot in places for piece in slot})
        lines = [f"const u32 w{word} = w[f][{tile}][{word}];" for word in words]
        lines.append("u32 a[1][4];")
        for number, (half, slot) in enumerate(places):
            value = self.pairs.pair(slot)
            if self._has_zero:
                value = self.pairs.fused(value, self.pairs.both(1.0), f"z{tile}_{half}")
            if self._is_early:
                value = self.pairs.scaled(value, f"m{tile}_{half}")
            lines.append(f"a[0][{number}] = {value};")
        return lines

    def _over_sums(self, *body: str) -> Lines:
        """C loop over the instructions' columns of a tile."""
        return CUDA.loop("r", self._rows // COLUMNS, body, unroll=True)

    # -- the sums ----------------------------------------------------------------------------------

    def _leave(self) -> Lines:
        """Leave the sums in shared memory: a lane has two rows of the product."""
        lines = []
        for tile, half in self._halves():
            body = []
            for row in range(2):
                own = f"part * {self._rows} + r * {COLUMNS} + lane % 4 * 2 + {row}"
                place = f"({own}) * {self._columns} + {self._column(tile, half)}"
                sum = f"s[{tile}][r][{2 * half + row}]"
                body.append(f"tw::store_shared(shared + {FLOAT} * ({place}), {sum});")
            lines += self._over_sums(*body)
        return lines
