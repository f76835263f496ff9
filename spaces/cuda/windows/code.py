"""The CUDA C++ of sums over windows that overlap, by ``mma.sync``.

A block keeps its columns of the right factor in shared memory, and a table of where each term is,
counted from its row. For each of its tiles it copies the window of the image that the rows read,
while the tile before is multiplied, and its warps take their fragments out of that, element by
element where pairs of terms are no neighbours: nothing is gathered twice, however often windows
overlap.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.index import Index, index
from spaces.algebra.integers import ceil_div
from spaces.algebra.layout import Layout
from spaces.algebra.mapping import repeat, spatial
from spaces.algebra.mapping_emit import indented
from spaces.cuda.abi import C_TYPES
from spaces.cuda.blocks.finish import signature
from spaces.cuda.blocks.implicit import ImplicitProduct
from spaces.cuda.blocks.unrolled import THREAD, unrolled
from spaces.cuda.mma.accumulators import Accumulators
from spaces.cuda.mma.code import INSTRUCTIONS
from spaces.cuda.mma.fragments import FRAGMENT, Fragments, swizzled_tile
from spaces.cuda.windows.image import PAIR, Image
from spaces.cuda.windows.sizes import OFFSET_BYTES, WindowSizes
from spaces.kernel import Call, Kernel, Launch, Source, arguments
from spaces.schedule import Value

HELD = 8
"""Elements that a thread loads before it stores the first of them."""

STEPS = 2
"""Fragments of depth whose loads the compiler may put before the products of the first."""

Place = Callable[[Index], str]


@dataclass(frozen=True)
class WindowCode:
    """The kernel called ``entry`` under the decisions ``values``."""

    sizes: WindowSizes
    values: Mapping[str, Value]
    entry: str

    # -- extents -------------------------------------------------------------------------------

    @property
    def product(self) -> ImplicitProduct:
        """What is computed."""
        assert isinstance(self.sizes.product, ImplicitProduct)
        return self.sizes.product

    @property
    def image(self) -> Image:
        """The left factor with its borders."""
        return self.sizes.image

    def number(self, name: str) -> int:
        """An integer decision."""
        return int(self.values[name])

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return int(self.sizes.threads(self.values))

    @property
    def blocks(self) -> int:
        """Blocks along rows."""
        return int(self.sizes.blocks(self.values))

    @property
    def buffers(self) -> int:
        """Windows in shared memory."""
        return int(self.sizes.buffers(self.values))

    @property
    def window_bytes(self) -> int:
        """Shared memory of one of them."""
        return int(self.sizes.window_bytes(self.values))

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of a tile."""
        rows, columns = self.sizes.block(self.values)
        return int(rows), int(columns)

    @property
    def warps(self) -> tuple[int, int]:
        """Warps of a block along rows and columns."""
        return self.number("warp_rows"), self.number("warp_columns")

    @property
    def fragments(self) -> tuple[int, int]:
        """Fragments of 16 rows and of 16 columns in a warp's tile."""
        return self.number("tile_rows") // FRAGMENT, self.number("tile_columns") // FRAGMENT

    @property
    def kind(self) -> str:
        """C type of both factors' elements."""
        return C_TYPES[self.product.left.dtype]

    # -- memory --------------------------------------------------------------------------------

    @property
    def right_layout(self) -> Layout:
        """Of the right factor's columns, (column, term)."""
        return swizzled_tile(self.block[1], self.sizes.depth, self.sizes.element)

    @cached_property
    def right(self) -> Fragments:
        """Fragments of the right factor."""
        count, element = self.fragments[1], self.sizes.element
        return Fragments("b", 1, self.warps, count, self.right_layout, True, element)

    @cached_property
    def accumulated(self) -> Accumulators:
        """The sums of the block, and their way out."""
        through_shared = self.values["store"] == "shared"
        return Accumulators(self.product, self.warps, self.fragments, "float", through_shared)

    # -- text ----------------------------------------------------------------------------------

    def kernel(self, prelude: str) -> Kernel:
        """The kernel as a whole; ``prelude`` defines what the epilogue calls."""
        workload, columns = self.product.workload, int(self.sizes.tiles(self.values)[1])
        shared = int(self.sizes.shared_bytes(self.values))
        launch = Launch((self.blocks, columns, 1), (self.threads, 1, 1), shared_bytes=shared)
        call = Call(self.entry, arguments(workload.inputs, workload.outputs), 0, 0, (launch,))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The entry."""
        bounds = f"__launch_bounds__({self.threads}, {self.number('residency')})"
        windows = self.buffers * self.window_bytes
        table = windows + int(self.sizes.right_bytes(self.values))
        walk = repeat(self.number("turns")) * spatial(self.blocks)
        tiles = int(self.sizes.tiles(self.values)[0])
        lines = [
            f'extern "C" __global__ void {bounds} {self.entry}({signature(self.product)}) {{',
            "  const u32 windows = tw::shared_base();",
            f"  const u32 factor = windows + {windows}, table = windows + {table};",
            f"  const int column0 = (int)blockIdx.y * {self.block[1]};",
            *indented(self._fetch(f"(int)blockIdx.x * {self.block[0]}", "windows")),
            *indented(self._fill_table()),
            *indented(self._fill_right()),
            *indented(
                walk.emit(
                    "blockIdx.x", self._tile, extents=(tiles,), integer="int", language="cuda"
                )
            ),
            "}",
        ]
        return "\n".join(lines) + "\n"

    # -- what a block keeps --------------------------------------------------------------------

    def _fill_table(self) -> list[str]:
        """For each pair of places, bytes from the place of a row to its terms: to both, or to the
        first one of neighbours, and which bits of these are terms."""
        runs, element = self.image.runs, self.sizes.element

        def offset(place: Index) -> str:
            return (self.image.of_term(runs.term(place)) * element).text

        def body(indices: tuple[Index, ...]) -> list[str]:
            low, high = (indices[0] * PAIR + e for e in range(PAIR))
            tests = [" && ".join(runs.has(place)) for place in (low, high)]
            if not runs.paired:
                found = [f"{t} ? {offset(p)} : 0" for t, p in zip(tests, (low, high), strict=True)]
            else:
                run = low // runs.width * runs.length
                start = (self.image.of_term(run) + low % runs.width) * element
                found = [
                    f"({low} < {runs.terms} ? {start.text} : 0) - {runs.before * element}",
                    f"({tests[0]} ? 0xffff : 0) | ({tests[1]} ? (i32)0xffff0000 : 0)",
                ]
            place = f"table + {(indices[0] * (PAIR * OFFSET_BYTES)).text}"
            return [
                f"const i32 pair[2] = {{{', '.join(found)}}};",
                f"tw::store_shared<2>({place}, pair);",
            ]

        return self._each(self.sizes.depth // PAIR, "k", body)

    def _fill_right(self) -> list[str]:
        """The columns of the right factor, zero beyond the last term and column."""
        (_, wide), depth, product = self.block, self.sizes.depth, self.product
        gathered = product.gathered[1]

        def split(number: Index) -> tuple[Index, Index]:
            return number // depth, number % depth

        def source(number: Index) -> tuple[str, list[str]]:
            column, k = split(number)
            at = gathered.of_width(index("column0") + column, Index(), Index())[0]
            tests = self.image.runs.has(k)
            if product.columns % wide:
                tests.append(f"{(index('column0') + column).text} < {product.columns}")
            return f"right + {(at + gathered.of_depth(self.image.runs.term(k))[0]).text}", tests

        def place(number: Index) -> str:
            at = self.right_layout.index([*split(number)]) * self.sizes.element
            return f"factor + {at.text}"

        return self._held(wide * depth, "r", source, place)

    # -- a tile --------------------------------------------------------------------------------

    def _tile(self, indices: tuple[Index, ...]) -> list[str]:
        """All that is done with a tile, whose window is on its way. Where there are two, the next
        one's is fetched meanwhile; else afterwards."""
        (tile,) = indices
        more = [f"const int row0 = {(tile * self.block[0]).text};"]
        shared, ahead, behind = "windows", list[str](), list[str]()
        if self.number("turns") > 1:
            bytes, turn = self.window_bytes, tile // self.blocks
            if self.buffers > 1:
                shared = f"windows + {(turn % 2 * bytes).text}"
                ahead = self._fetch_next(f"windows + {((turn + 1) % 2 * bytes).text}")
            else:
                behind = ["tw::sync_block();", *self._fetch_next("windows")]
        return [
            *more,
            f"const u32 shared = {shared};",
            f"float sums[{self.accumulated.count}][4] = {{}};",
            *self._places_of_rows(),
            "tw::cp_async_wait<0>();",
            "tw::sync_block();",
            *ahead,
            *self._multiply(),
            *self.accumulated.finish(),
            *behind,
        ]

    def _fetch_next(self, to: str) -> list[str]:
        """Fetch the window of the block's next tile, if there is one."""
        row = f"row0 + {self.blocks * self.block[0]}"
        return [
            f"if ({row} < {self.product.rows}) {{",
            *indented(self._fetch(row, to)),
            "}",
        ]

    def _fetch(self, row: str, to: str) -> list[str]:
        """Start to copy the window of the tile that begins at a row to the address ``to``."""
        return [
            "{",
            f"  const int start = {row};",
            f"  const int first = {self._first('start')};",
            *indented(self._fill_window(to)),
            "  tw::cp_async_commit();",
            "}",
        ]

    def _first(self, row: str) -> str:
        """The vector of the image that the window of a tile begins with."""
        unit, vector = self.image.unit, self.image.vector
        return (self.image.of_row(index(row)) // unit * (unit // vector)).text

    def _fill_window(self, to: str) -> list[str]:
        """Copy the window from vector ``first`` of the image on."""
        vectors, size = int(self.sizes.vectors(self.values)), self.sizes.vector_bytes

        def source(number: Index) -> tuple[str, list[str]]:
            at, skipped, tests = self.image.source(index("first") + number)
            return f"left + ({at.text} - {skipped})", tests

        def place(number: Index) -> str:
            return f"{to} + {(number * size).text}"

        def body(indices: tuple[Index, ...]) -> list[str]:
            address, tests = source(indices[0])
            inside = f"{' && '.join(tests)} ? {size} : 0"
            return [f"tw::cp_async<{size}>({place(indices[0])}, {address}, {inside});"]

        if self.sizes.asynchronous:
            return self._each(vectors, "w", body)
        return self._held(vectors, "w", source, place)

    def _places_of_rows(self) -> list[str]:
        """``places[j]``: where the window has what row ``j`` of a thread reads; rows beyond the
        last read what that one does."""
        rows, _ = self.warps
        turns, last = 2 * self.fragments[0], self.product.rows - 1
        lanes = spatial(1, FRAGMENT // 2, 4)
        warps = spatial(self.warps[1], rows, 1, order=(1, 0, 2))
        mapping = (warps * repeat(1, turns, 1) * lanes).project((1,))
        vector, element = self.image.vector, self.sizes.element

        def body(indices: tuple[Index, ...]) -> list[str]:
            (row,) = indices
            turn = (row // (FRAGMENT // 2) % turns).text
            number = (index("row0") + row).text
            known = f"const int row = {number};"
            if self.product.rows % self.block[0]:
                known = f"const int row = {number} < {last} ? {number} : {last};"
            at = (self.image.of_row(index("row", last + 1)) * element).text
            return [known, f"places[{turn}] = shared + ({at} - first * {vector * element});"]

        lines = [f"const int first = {self._first('row0')};", f"u32 places[{turns}];"]
        return [*lines, *unrolled(mapping, THREAD, body, "p")]

    def _multiply(self) -> list[str]:
        """All products of the tile; in the last fragment, places without a term are zero."""
        steps, paired = self.sizes.depth // FRAGMENT, self.image.runs.paired
        whole = steps if paired else self.product.terms // FRAGMENT

        def step(indices: tuple[Index, ...]) -> list[str]:
            return self._step(indices[0], False)

        lines: list[str] = []
        if whole:
            lines += repeat(whole).emit(
                0, step, prefix="k", unroll=STEPS, integer="int", language="cuda"
            )
        if whole < steps:
            lines += ["{", *indented(self._step(Index((), whole), True)), "}"]
        return lines

    def _step(self, k: Index, last: bool) -> list[str]:
        rows, columns = self.accumulated.shape
        lane = f"table + {(k * FRAGMENT * OFFSET_BYTES).text} + threadIdx.x % 4 * 8"

        def accumulate(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            block, half = (j // 2).text, j % 2 * 2
            pair = f"b[{block}][{half.text}], b[{block}][{(half + 1).text}]"
            total = f"sums[{(i * columns + j).text}]"
            return [
                f"const u32 pair[2] = {{{pair}}};",
                f"tw::{INSTRUCTIONS[self.product.left.dtype]}({total}, a[{i.text}], pair);",
            ]

        return [
            f"u32 a[{rows}][4], b[{self.right.count}][4];",
            *self.right.load("factor", k),
            "i32 terms[4];",
            f"tw::load_shared<2>(terms, {lane});",
            f"tw::load_shared<2>(terms + 2, {lane} + {FRAGMENT // 2 * OFFSET_BYTES});",
            *unrolled(repeat(rows, 4), 0, lambda at: self._register(at[0], at[1], last), "a"),
            *unrolled(repeat(rows, columns), 0, accumulate, "t"),
        ]

    def _register(self, i: Index, number: Index, last: bool) -> list[str]:
        """Two neighbouring terms of a row: register ``number`` of fragment ``i``."""
        place, term = f"places[{(i * 2 + number % 2).text}]", number // 2 * 2
        first, second = (f"terms[{(term + e).text}]" for e in (0, 1))
        register = f"a[{i.text}][{number.text}]"
        if self.image.runs.paired:
            return [f"{register} = tw::load_shared<u32>({place} + {first}) & (u32){second};"]
        values = [f"(u32)tw::load_shared<u16>({place} + {at})" for at in (first, second)]
        low, high = (self._known(v, term, e, last) for e, v in enumerate(values))
        return [f"{register} = {low} | {high} << 16;"]

    def _known(self, value: str, term: Index, element: int, last: bool) -> str:
        """A value in the place of a term, or zero where that is beyond the last one."""
        if not last:
            return value
        rest = self.product.terms % FRAGMENT
        lane = f"(int)threadIdx.x % 4 * 2 + {(term * 4 + element).text}"
        return f"({lane} < {rest} ? {value} : 0u)"

    # -- threads share -------------------------------------------------------------------------

    def _each(
        self, count: int, prefix: str, body: Callable[[tuple[Index, ...]], Sequence[str]]
    ) -> list[str]:
        mapping = repeat(int(ceil_div(count, self.threads))) * spatial(self.threads)
        return unrolled(mapping, THREAD, body, prefix, (count,))

    def _held(
        self,
        count: int,
        prefix: str,
        source: Callable[[Index], tuple[str, list[str]]],
        place: Place,
    ) -> list[str]:
        """Elements through registers, some at a time: all loads, then all stores."""
        held = min(HELD, int(ceil_div(count, self.threads)))
        some = repeat(held) * spatial(self.threads)
        rounds = repeat(int(ceil_div(count, held * self.threads)))

        def round_of(indices: tuple[Index, ...]) -> list[str]:
            start = indices[0] * (held * self.threads)

            def load(at: tuple[Index, ...]) -> list[str]:
                address, tests = source(start + at[0])
                tests = [f"{(start + at[0]).text} < {count}", *tests]
                value = f"tw::load_global({address})"
                turn = (at[0] // self.threads).text
                return [f"held[{turn}] = {' && '.join(tests)} ? {value} : {self.kind}{{}};"]

            def store(at: tuple[Index, ...]) -> list[str]:
                turn = (at[0] // self.threads).text
                put = f"tw::store_shared({place(start + at[0])}, held[{turn}]);"
                return [f"if ({(start + at[0]).text} < {count}) {put}"]

            return [
                f"{self.kind} held[{held}];",
                *unrolled(some, THREAD, load, f"{prefix}l"),
                *unrolled(some, THREAD, store, f"{prefix}s"),
            ]

        return rounds.emit(0, round_of, prefix=prefix, integer="int", language="cuda")
