"""The CUDA C++ of the products of a chunk, whose tiles are at ``stage``, and numbers at ``turn``.

Warps share the scores of a chunk, which go through shared memory, and each has columns of its own:
those of its sums, and the rows of the state, which is turned. A state so is the right operand of
the product that reads it, as its registers lie. It has float32 sums and is rounded to two numbers
of 16 bits, of which the second is what the first one leaves: the program means no rounding there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.unrolled import Body, unrolled
from tilewright.spaces.cuda.chunked.block import WIDE, Block
from tilewright.spaces.cuda.chunked.numbers import Numbers
from tilewright.spaces.cuda.chunked.sizes import ADDED, BYTES, GROWN, READ, READING, TERM, WEIGHT
from tilewright.spaces.cuda.mma.code import INSTRUCTIONS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, multiply_add
from tilewright.spaces.kernels.text import CUDA

HELPERS = """\
template <class T> TW_INLINE void tw_halves(float x, float y, u32 &both, u32 &rest) {
  float a, b;
  both = tw::pack2<T>(x, y);
  tw::unpack2<T>(both, a, b);
  rest = tw::pack2<T>(x - a, y - b);
}
template <class T> TW_INLINE u32 tw_scaled(u32 pair, float x, float y) {
  float a, b;
  tw::unpack2<T>(pair, a, b);
  return tw::pack2<T>(a * x, b * y);
}
TW_INLINE float tw_power_near(float x) {
  return tw::bits_float(tw::float_bits(x) & 0x7f800000u);
}
TW_INLINE float tw_inverse_power(float x) {
  return tw::bits_float(0x7f000000u - tw::float_bits(x));
}
"""
"""C functions of pairs of numbers of 16 bits.

``tw_halves`` rounds a pair, and what that leaves. ``tw_power_near`` is the greatest power of two
that is no more than a number, and ``tw_inverse_power`` one over a power of two.
"""
POSITION = "lane / 4 + {} * 8"
"""C text of the position of a lane in sixteen: of the first or second half."""
PLACE = "lane % 4 * 2"
"""C text of the first of two columns of a lane in an accumulator."""


@dataclass(frozen=True)
class Products:
    """The work of a warp on a chunk."""

    block: Block
    numbers: Numbers

    @property
    def kind(self) -> str:
        """The C type of factors."""
        return C_TYPES[self.block.kind]

    def declared(self) -> list[str]:
        """Print the declaration of the state: of the rows of a warp's columns."""
        block = self.block
        return [f"float state[{block.fragments}][{block.sizes.depth // WIDE}][4] = {{}};"]

    def _multiply(self, total: str, left: str, right: str) -> Body:
        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            place = f"{total}[{i.text}][{j.text}]"
            return multiply_add(INSTRUCTIONS[self.block.kind], place, (left, right), indices)

        return body

    # -- scores ------------------------------------------------------------------------------------

    def scores(self) -> list[str]:
        """Print how a warp weighs its share of the scores, and leaves it in shared memory."""
        block = self.block
        a, b = block.score_left(), block.score_right()
        left, right, _ = block.places

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            return [
                f"u32 a[{a.count}][4], b[{b.count}][4];",
                *a.load(f"stage + {left}", k),
                *b.load(f"stage + {right}", k),
                *unrolled(repeat(a.count, 2 * b.count), 0, self._multiply("scores", "a", "b"), "t"),
            ]

        return CUDA.block(
            f"float scores[{a.count}][{2 * b.count}][4] = {{}};",
            *unrolled(repeat(block.steps), 0, step, "k"),
            *self._weighed(a.count, 2 * b.count),
        )

    def _weighed(self, rows: int, columns: int) -> list[str]:
        """Print how scores are weighed, and become zero where a term does not count."""
        block, names = self.block, self.block.sizes.numbers
        _, across = block.score_warps
        row = f"(warp / {across} * {rows} + f) * {FRAGMENT} + {POSITION.format('h')}"
        column = f"warp % {across} * {columns * WIDE} + j * {WIDE} + {PLACE}"
        pairs = [name for name in names if name in (GROWN, TERM, WEIGHT)]
        value = "scores[f][j][h * 2 + e]"
        if exponent := self.numbers.exponent("_row", "_term[e]"):
            value += f" * {self.numbers.power(exponent)}"
        value += f" * {WEIGHT}_term[e]" * (WEIGHT in names)
        test = f"column + e {'<' if block.view.carried.exclusive else '<='} row"
        at = [variable(name, block.chunk) for name in ("row", "column")]
        place = block.score_layout.index(at)
        read = [name for name in (GROWN, READING) if name in names]
        numbers_of_rows = [
            f"const float {name}_row = tw::load_shared<float>({block.number('turn', name, 'row')});"
            for name in read
        ]
        numbers_of_terms = [
            line
            for name in pairs
            for line in (
                f"float {name}_term[2];",
                f"tw::load_shared<2>({name}_term, {block.number('turn', name, 'column')});",
            )
        ]
        body = [
            f"const int row = {row};",
            *numbers_of_rows,
            "float two[2];",
            *CUDA.loop("e", 2, f"two[e] = {test} ? {value} : 0.0f;", unroll=True),
            *self._left(f"weighed + {place * BYTES}"),
        ]
        each = [*CUDA.loop("h", 2, body, unroll=True)]
        each = CUDA.loop("f", rows, each, unroll=True)
        return CUDA.loop(
            "j", columns, [f"const int column = {column};", *numbers_of_terms, *each], unroll=True
        )

    def _left(self, place: str) -> list[str]:
        """Print how two weighed scores go to shared memory, and what rounding leaves of them."""
        if self.block.view.has_rounded_scores:
            return [f"tw::store_shared({place}, tw::pack2<{self.kind}>(two[0], two[1]));"]
        return [
            "u32 both, left;",
            f"tw_halves<{self.kind}>(two[0], two[1], both, left);",
            f"tw::store_shared({place}, both);",
            f"tw::store_shared({place} + {self._tile}, left);",
        ]

    @property
    def _tile(self) -> int:
        """Bytes of the weighed scores of a chunk."""
        return self.block.chunk * self.block.chunk * BYTES

    @property
    def _parts(self) -> Sequence[int]:
        """The places of weighed scores, and of what rounding leaves of them."""
        return (0,) if self.block.view.has_rounded_scores else (0, self._tile)

    # -- the state ---------------------------------------------------------------------------------

    def read(self) -> list[str]:
        """Print how all positions of a chunk read the state before it."""
        block = self.block
        a, (left, _, _) = block.reading(), block.places
        own = 2 * block.fragments

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            scale = " * down[f][h]" * self._is_narrow
            first = f"state[f][{(k * 2).text} + e][h * 2"
            two, place = f"{first}]{scale}, {first} + 1]{scale}", "[f][h * 2 + e]"
            split = f"tw_halves<{self.kind}>({two}, b{place}, rest{place});"
            loops = CUDA.loop("e", 2, split, unroll=True)
            loops = CUDA.loop("h", 2, loops, unroll=True)
            both = (self._multiply("sums", "a", name) for name in ("b", "rest"))
            return [
                f"u32 a[{a.count}][4], b[{block.fragments}][4], rest[{block.fragments}][4];",
                *a.load(f"stage + {left}", k),
                *CUDA.loop("f", block.fragments, loops, unroll=True),
                *(line for each in both for line in unrolled(repeat(a.count, own), 0, each, "t")),
            ]

        lines = [
            f"float sums[{block.rows}][{own}][4] = {{}};",
            *(self._narrowed() if self._is_narrow else []),
            *unrolled(repeat(block.steps), 0, step, "k"),
        ]
        return [*lines, *self._scaled_sums()]

    @property
    def _is_narrow(self) -> bool:
        """True if states may be too large for the dtype of factors, or too small."""
        return self.block.kind == "float16"

    def _narrowed(self) -> list[str]:
        """Print powers of two of the rows of a state, so that their largest number is near one."""
        block = self.block
        values = "tw::bits_float(tw::float_bits(state[f][k][h * 2 + e]) & 0x7fffffffu)"
        most = CUDA.loop("e", 2, f"most = tw_most(most, {values});", unroll=True)
        body = [
            "float most = 0.0f;",
            *CUDA.loop("k", block.sizes.depth // WIDE, most, unroll=True),
            "most = tw_most(most, tw::shuffle_xor(most, 1));",
            "most = tw_most(most, tw::shuffle_xor(most, 2));",
            "up[f][h] = tw_power_near(most);",
            "down[f][h] = tw_inverse_power(up[f][h]);",
        ]
        halves = CUDA.loop("h", 2, body, unroll=True)
        count = block.fragments
        declared = f"float up[{count}][2], down[{count}][2];"
        return [declared, *CUDA.loop("f", count, halves, unroll=True)]

    def _scaled_sums(self) -> list[str]:
        """Print how sums are multiplied by the powers with which the state is read."""
        block, factors = self.block, list[str]()
        if READ in block.sizes.numbers:
            factors.append("scale[h]")
        if self._is_narrow:
            factors.append("wide[e]")
        if not factors:
            return []
        row = f"i * {FRAGMENT} + {POSITION.format('h')}"
        place = block.number("turn", READ, row) if READ in block.sizes.numbers else ""
        scales = CUDA.loop("h", 2, f"scale[h] = tw::load_shared<float>({place});", unroll=True)
        wide = f"wide[e] = tw::shuffle(up[j / 2][j % 2], ({PLACE} + e) * 4);"
        times = f"sums[i][j][h * 2 + e] *= {' * '.join(factors)};"
        four = CUDA.loop("h", 2, CUDA.loop("e", 2, times, unroll=True), unroll=True)
        widened = ["float wide[2];", *CUDA.loop("e", 2, wide, unroll=True)] * self._is_narrow
        columns = CUDA.loop("j", 2 * block.fragments, [*widened, *four], unroll=True)
        scaled = [*(["float scale[2];", *scales] if place else []), *columns]
        return CUDA.loop("i", block.rows, scaled, unroll=True)

    def added(self) -> list[str]:
        """Print how a chunk joins the state, which is scaled anew."""
        block = self.block
        a, b = block.added_left(), block.added_right()
        _, right, matrix = block.places

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            return [
                f"u32 a[{a.count}][4], b[{b.count}][4];",
                *a.load(f"stage + {matrix}", k),
                *self._scaled_matrix(k),
                *b.load(f"stage + {right}", k),
                *unrolled(repeat(a.count, 2 * b.count), 0, self._multiply("state", "a", "b"), "t"),
            ]

        return CUDA.block(*self._kept(), *unrolled(repeat(block.rows), 0, step, "k"))

    def _kept(self) -> list[str]:
        block = self.block
        if block.view.decay is None:
            return []
        four = CUDA.loop("e", 4, "state[f][k][e] *= kept;", unroll=True)
        each = CUDA.loop("k", block.sizes.depth // WIDE, four, unroll=True)
        return [
            f"const float kept = tw::load_shared<float>({block.kept('turn')});",
            *CUDA.loop("f", block.fragments, each, unroll=True),
        ]

    def _scaled_matrix(self, k: Index) -> list[str]:
        """Print how rows of the matrix are multiplied by what they join the state with."""
        block = self.block
        if ADDED not in block.sizes.numbers:
            return []
        place = block.number("turn", ADDED, f"{(k * FRAGMENT).text} + i * {WIDE} + {PLACE}")
        pair = "a[f][i * 2 + h]"
        scaled = f"{pair} = tw_scaled<{self.kind}>({pair}, scale[0], scale[1]);"
        body = CUDA.loop("h", 2, scaled, unroll=True)
        body = CUDA.loop("f", block.fragments, body, unroll=True)
        load = ["float scale[2];", f"tw::load_shared<2>(scale, {place});"]
        return CUDA.loop("i", 2, [*load, *body], unroll=True)

    # -- sums --------------------------------------------------------------------------------------

    def summed(self) -> list[str]:
        """Print how the terms of a chunk join the sums of its positions."""
        return CUDA.block(*self._before(), *self._diagonal())

    def _weighed_at(self, i: int) -> str:
        """Return C text of where the weighed scores of sixteen positions are."""
        return f"weighed + {self.block.score_layout.offset(i * FRAGMENT, 0) * BYTES}"

    def _before(self) -> list[str]:
        """Print the terms of all sixteens of positions before another."""
        block, lines = self.block, list[str]()
        b, (_, _, matrix) = block.matrix(), block.places
        for k in range(block.rows - 1):
            step = [f"u32 b[{b.count}][4];", *b.load(f"stage + {matrix}", Index(constant=k))]
            for i in range(k + 1, block.rows):
                step += self._product(i, k, f"sums[{i}]")
            lines += CUDA.block(*step)
        return lines

    def _product(self, i: int, k: int, total: str) -> list[str]:
        """Print the product of weighed scores and fragments ``b`` of the matrix."""
        parts = (self._part(i, k, total, part) for part in self._parts)
        return [line for part in parts for line in CUDA.block(*part)]

    def _part(self, i: int, k: int, total: str, part: int) -> list[str]:
        def body(indices: tuple[Index, ...]) -> Sequence[str]:
            _, j = indices
            pair = f"{total}[{j.text}]"
            return multiply_add(INSTRUCTIONS[self.block.kind], pair, ("a", "b"), indices)

        return [
            "u32 a[1][4];",
            *self.block.weighed().load(f"{self._weighed_at(i)} + {part}", Index(constant=k)),
            *unrolled(repeat(1, 2 * self.block.fragments), 0, body, "t"),
        ]

    def _diagonal(self) -> list[str]:
        """Print the terms of each sixteen of positions itself, of which some do not count."""
        block, lines = self.block, list[str]()
        b, (_, _, matrix) = block.matrix(), block.places
        columns = 2 * block.fragments
        for i in range(block.rows):
            odd = CUDA.loop("e", 4, "odd = tw::fused(own[j][e], 0.0f, odd);", unroll=True)
            add = CUDA.loop("e", 4, f"sums[{i}][j][e] += own[j][e];", unroll=True)
            lines += CUDA.block(
                f"float own[{columns}][4] = {{}}, odd = 0.0f;",
                f"u32 b[{b.count}][4];",
                *b.load(f"stage + {matrix}", Index(constant=i)),
                *self._product(i, i, "own"),
                *CUDA.loop("j", columns, odd, unroll=True),
                *CUDA.when("__builtin_expect(odd != odd, 0)", self._again(i)),
                *CUDA.loop("j", columns, add, unroll=True),
            )
        return lines

    def _loaded(self, place: str) -> str:
        return f"tw::to_float(tw::load_shared<{self.kind}>({place}))"

    def _again(self, i: int) -> list[str]:
        """Print the same term by term, where an infinity is multiplied by zero for a term that does
        not count."""
        block = self.block
        _, _, matrix = block.places
        first, all_columns = i * FRAGMENT, int(block.sizes.columns(block.values))
        row, term = (variable(name, FRAGMENT) + first for name in ("row", "term"))
        score = block.score_layout.index([row, term]) * BYTES
        entry = block.matrix_layout.index([term, variable("column", all_columns)]) * BYTES
        weight, *rest = (self._loaded(f"weighed + {part} + {score}") for part in self._parts)
        factors = (" + ".join((weight, *rest)), self._loaded(f"stage + {matrix} + {entry}"))
        last = "row" if block.view.carried.exclusive else "row + 1"
        own = f"warp * {block.fragments * FRAGMENT} + j * {WIDE} + {PLACE} + e % 2"
        added = f"total = tw::fused({', '.join(factors)}, total);"
        body = [
            f"const int row = {POSITION.format('e / 2')}, column = {own};",
            "float total = 0.0f;",
            *CUDA.loop("term", last, added, unroll=1),
            "own[j][e] = total;",
        ]
        each = CUDA.loop("e", 4, body, unroll=True)
        return CUDA.loop("j", 2 * block.fragments, each, unroll=True)
