"""The copies of a block to shared memory: windows, the right factor, the table of terms."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.windows.image import PAIR
from tilewright.spaces.cuda.windows.plan import WindowPlan
from tilewright.spaces.cuda.windows.sizes import OFFSET_BYTES
from tilewright.spaces.kernels.text import CUDA

HELD = 32
"""Elements that a thread loads before it stores the first of them."""
LANES = 16
"""Threads side by side along the terms of a column."""

Source = Callable[[Index], tuple[str, list[str]]]
"""A function from an element's number to its address and the tests that it exists."""
Place = Callable[[Index], str]
"""A function from an element's number to its address in shared memory."""


@dataclass(frozen=True)
class WindowMemory:
    """The copies to the right factor at the address ``factor``, the table at ``table``, and
    windows."""

    plan: WindowPlan

    def fill_table(self) -> list[str]:
        """Print how the table of pairs of places is filled with offsets from a row's place.

        An entry has the bytes to both terms or, for neighbours, to the first one, and a mask of the
        bits that are terms.
        """
        runs, element = self.plan.image.runs, self.plan.sizes.element

        def offset(place: Index) -> str:
            return (self.plan.image.of_term(runs.term(place)) * element).text

        def body(indices: tuple[Index, ...]) -> list[str]:
            low, high = (indices[0] * PAIR + e for e in range(PAIR))
            tests = [" && ".join(runs.has(place)) for place in (low, high)]
            if not runs.paired:
                found = [f"{t} ? {offset(p)} : 0" for t, p in zip(tests, (low, high), strict=True)]
            else:
                run = low // runs.width * runs.length
                start = (self.plan.image.of_term(run) + low % runs.width) * element
                found = [
                    f"({low} < {runs.terms} ? {start.text} : 0) - {runs.before * element}",
                    f"({tests[0]} ? 0xffff : 0) | ({tests[1]} ? (i32)0xffff0000 : 0)",
                ]
            place = f"table + {(indices[0] * (PAIR * OFFSET_BYTES)).text}"
            return [
                f"const i32 pair[2] = {{{', '.join(found)}}};",
                f"tw::store_shared<2>({place}, pair);",
            ]

        return self._each(self.plan.sizes.depth // PAIR, "k", body)

    def fill_right(self) -> list[str]:
        """Print the copy of the right factor's columns, zero beyond the last term and column.

        A thread has the same places of several columns, so that it finds their terms once.
        """
        plan, depth, wide = self.plan, self.plan.sizes.depth, self.plan.block[1]
        rows = plan.threads // LANES
        turns, steps = int(ceil_div(wide, rows)), depth // LANES
        some = min(steps, max(1, HELD // turns))
        each = repeat(1, some) * repeat(turns, 1) * spatial(rows, LANES)

        def round_of(indices: tuple[Index, ...]) -> list[str]:
            start = indices[0] * (some * LANES)
            extents = (wide if wide % rows else None, None)

            def put(lines: Callable[[Index, Index, str], str], prefix: str) -> list[str]:
                def body(at: tuple[Index, ...]) -> list[str]:
                    column, place = at[0], start + at[1]
                    held = f"held[{(at[1] // LANES % some * turns + column // rows).text}]"
                    tests = f"if ({place.text} < {depth}) " if steps % some else ""
                    return [tests + lines(column, place, held)]

                return unrolled(each, THREAD, body, prefix, extents)

            return [
                f"{plan.kind} held[{some * turns}];",
                *put(self._load_right, "rl"),
                *put(self._store_right, "rs"),
            ]

        rounds = repeat(int(ceil_div(steps, some)))
        return rounds.emit(0, round_of, prefix="r", integer="int", language="cuda")

    def _load_right(self, column: Index, place: Index, held: str) -> str:
        plan, product, runs = self.plan, self.plan.product, self.plan.image.runs
        gathered, tests = product.gathered[1], runs.has(place)
        number = index("column0") + column
        if product.columns % plan.block[1]:
            tests.append(f"{number.text} < {product.columns}")
        at = gathered.of_width(number, Index(), Index())[0] + gathered.of_depth(runs.term(place))[0]
        value = f"tw::load_global(right + {at.text})"
        return f"{held} = {' && '.join(tests)} ? {value} : {plan.kind}{{}};"

    def _store_right(self, column: Index, place: Index, held: str) -> str:
        at = self.plan.right_layout.index([column, place]) * self.plan.sizes.element
        return f"tw::store_shared(factor + {at.text}, {held});"

    def fetch(self, row: str, to: str) -> list[str]:
        """Print how the copy of the window of the tile that begins at a row is started.

        The window goes to the address ``to``.
        """
        return CUDA.block(
            f"const int start = {row};",
            f"const int first = {self.plan.first('start')};",
            *self._fill_window(to),
            "tw::cp_async_commit();",
        )

    def _fill_window(self, to: str) -> list[str]:
        """Print how the window is copied, from vector ``first`` of the image on."""
        vectors, size = int(self.plan.sizes.vectors(self.plan.values)), self.plan.sizes.vector_bytes

        def source(number: Index) -> tuple[str, list[str]]:
            at, skipped, tests = self.plan.image.source(index("first") + number)
            return f"left + ({at.text} - {skipped})", tests

        def place(number: Index) -> str:
            return f"{to} + {(number * size).text}"

        def body(indices: tuple[Index, ...]) -> list[str]:
            address, tests = source(indices[0])
            inside = f"{' && '.join(tests)} ? {size} : 0"
            return [f"tw::cp_async<{size}>({place(indices[0])}, {address}, {inside});"]

        if self.plan.sizes.asynchronous:
            return self._each(vectors, "w", body)
        return self._held(vectors, "w", source, place)

    def _each(
        self, count: int, prefix: str, body: Callable[[tuple[Index, ...]], Sequence[str]]
    ) -> list[str]:
        mapping = repeat(int(ceil_div(count, self.plan.threads))) * spatial(self.plan.threads)
        return unrolled(mapping, THREAD, body, prefix, (count,))

    def _held(
        self,
        count: int,
        prefix: str,
        source: Source,
        place: Place,
    ) -> list[str]:
        """Print copies of elements through registers, some at a time: all loads, then all
        stores."""
        held = min(HELD, int(ceil_div(count, self.plan.threads)))
        some = repeat(held) * spatial(self.plan.threads)
        rounds = repeat(int(ceil_div(count, held * self.plan.threads)))

        def round_of(indices: tuple[Index, ...]) -> list[str]:
            start = indices[0] * (held * self.plan.threads)

            def load(at: tuple[Index, ...]) -> list[str]:
                address, tests = source(start + at[0])
                tests = [f"{(start + at[0]).text} < {count}", *tests]
                value = f"tw::load_global({address})"
                turn = (at[0] // self.plan.threads).text
                return [f"held[{turn}] = {' && '.join(tests)} ? {value} : {self.plan.kind}{{}};"]

            def store(at: tuple[Index, ...]) -> list[str]:
                turn = (at[0] // self.plan.threads).text
                put = f"tw::store_shared({place(start + at[0])}, held[{turn}]);"
                return [f"if ({(start + at[0]).text} < {count}) {put}"]

            return [
                f"{self.plan.kind} held[{held}];",
                *unrolled(some, THREAD, load, f"{prefix}l"),
                *unrolled(some, THREAD, store, f"{prefix}s"),
            ]

        return rounds.emit(0, round_of, prefix=prefix, integer="int", language="cuda")
