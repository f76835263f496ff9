"""The CUDA C++ of sums over windows that overlap, by ``mma.sync``.

A block keeps its columns of the right factor in shared memory, and a table of the offset of each
term from its row. For each of its tiles it copies the window of the image that the rows read, while
the tile before is multiplied, and its warps take their fragments out of that, element by element
where pairs of terms are no neighbours: nothing is gathered twice, however often windows overlap.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.blocks.finish import signature
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.mma.accumulators import Accumulators
from tilewright.spaces.cuda.mma.code import INSTRUCTIONS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, Fragments, multiply_add
from tilewright.spaces.cuda.windows.memory import WindowMemory
from tilewright.spaces.cuda.windows.plan import WindowPlan
from tilewright.spaces.cuda.windows.sizes import OFFSET_BYTES
from tilewright.spaces.kernel import Call, Kernel, Launch, Source, arguments
from tilewright.spaces.kernels.text import CUDA

STEPS = 2
"""Fragments of depth whose loads the compiler may hoist above the products of the first."""


@dataclass(frozen=True)
class WindowCode:
    """The kernel named ``entry`` that follows ``plan``."""

    plan: WindowPlan
    entry: str

    # -- memory --------------------------------------------------------------------------------

    @property
    def memory(self) -> WindowMemory:
        """The code that fills shared memory."""
        return WindowMemory(self.plan)

    @cached_property
    def right(self) -> Fragments:
        """The fragments of the right factor."""
        count, element = self.plan.fragments[1], self.plan.sizes.element
        return Fragments("b", 1, self.plan.warps, count, self.plan.right_layout, True, element)

    @cached_property
    def accumulated(self) -> Accumulators:
        """The sums of the block, and their store."""
        through_shared = self.plan.values["store_path"] == "shared"
        return Accumulators(
            self.plan.product, self.plan.warps, self.plan.fragments, "float", through_shared
        )

    # -- text ----------------------------------------------------------------------------------

    def kernel(self, prelude: str) -> Kernel:
        """Return the kernel with its launch; ``prelude`` defines what the epilogue calls."""
        plan, workload = self.plan, self.plan.product.workload
        shared = int(plan.sizes.shared_bytes(plan.values))
        grid = (plan.blocks, plan.tiles[1], 1)
        launch = Launch(grid, (plan.threads, 1, 1), shared_bytes=shared)
        call = Call(self.entry, arguments(workload.inputs, workload.outputs), 0, 0, (launch,))
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The CUDA C++ of the entry."""
        bounds = f"{self.plan.threads}, {self.plan.number('blocks_per_sm')}"
        windows = self.plan.buffers * self.plan.window_bytes
        table = windows + int(self.plan.sizes.right_bytes(self.plan.values))
        walk = repeat(self.plan.number("coarsening")) * spatial(self.plan.blocks)
        tiles = self.plan.tiles[0]
        lines = [
            "const u32 windows = tw::shared_base();",
            f"const u32 factor = windows + {windows}, table = windows + {table};",
            f"const int column0 = (int)blockIdx.y * {self.plan.block[1]};",
            *self.memory.fetch(f"(int)blockIdx.x * {self.plan.block[0]}", "windows"),
            *self.memory.fill_table(),
            *self.memory.fill_right(),
            *walk.emit("blockIdx.x", self._tile, "cuda", extents=(tiles,), integer="int"),
        ]
        return "\n".join(function(self.entry, bounds, signature(self.plan.product), lines)) + "\n"

    # -- a tile --------------------------------------------------------------------------------

    def _tile(self, indices: tuple[Index, ...]) -> list[str]:
        """Print all work on a tile, whose window is already being copied.

        With two buffers, the next tile's window is fetched meanwhile; else afterwards.
        """
        (tile,) = indices
        shared, ahead, behind = "windows", list[str](), list[str]()
        if self.plan.number("coarsening") > 1:
            bytes, turn = self.plan.window_bytes, tile // self.plan.blocks
            if self.plan.buffers > 1:
                shared = f"windows + {(turn % 2 * bytes).text}"
                ahead = self._fetch_next(f"windows + {((turn + 1) % 2 * bytes).text}")
            else:
                behind = ["tw::sync_block();", *self._fetch_next("windows")]
        return [
            f"const int row0 = {(tile * self.plan.block[0]).text};",
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
        """Print how the window of the block's next tile is fetched, if there is one."""
        row = f"row0 + {self.plan.blocks * self.plan.block[0]}"
        return CUDA.when(f"{row} < {self.plan.product.rows}", self.memory.fetch(row, to))

    def _places_of_rows(self) -> list[str]:
        """Print ``places[j]``: where in the window row ``j`` of a thread begins to read.

        Rows beyond the last read the elements of the last one.
        """
        rows, _ = self.plan.warps
        turns, last = 2 * self.plan.fragments[0], self.plan.product.rows - 1
        lanes = spatial(1, FRAGMENT // 2, 4)
        warps = spatial(self.plan.warps[1], rows, 1, order=(1, 0, 2))
        mapping = (warps * repeat(1, turns, 1) * lanes).project((1,))
        vector, element = self.plan.image.vector, self.plan.sizes.element

        def body(indices: tuple[Index, ...]) -> list[str]:
            (row,) = indices
            turn = (row // (FRAGMENT // 2) % turns).text
            number = (index("row0") + row).text
            known = f"const int row = {number};"
            if self.plan.product.rows % self.plan.block[0]:
                known = f"const int row = {number} < {last} ? {number} : {last};"
            at = (self.plan.image.of_row(index("row", last + 1)) * element).text
            return [known, f"places[{turn}] = shared + ({at} - first * {vector * element});"]

        lines = [f"const int first = {self.plan.first('row0')};", f"u32 places[{turns}];"]
        return [*lines, *unrolled(mapping, THREAD, body, "p")]

    def _multiply(self) -> list[str]:
        """Print all products of the tile; in the last fragment, places without a term are zero."""
        steps, paired = self.plan.sizes.depth // FRAGMENT, self.plan.image.runs.paired
        whole = steps if paired else self.plan.product.terms // FRAGMENT

        def step(indices: tuple[Index, ...]) -> list[str]:
            return self._step(indices[0], False)

        lines: list[str] = []
        if whole:
            lines += repeat(whole).emit(
                0, step, prefix="k", unroll=STEPS, integer="int", language="cuda"
            )
        if whole < steps:
            lines += CUDA.block(*self._step(Index((), whole), True))
        return lines

    def _step(self, k: Index, last: bool) -> list[str]:
        rows, columns = self.accumulated.shape
        lane = f"table + {(k * FRAGMENT * OFFSET_BYTES).text} + threadIdx.x % 4 * 8"

        def accumulate(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            total = f"sums[{(i * columns + j).text}]"
            instruction = INSTRUCTIONS[self.plan.product.left.dtype]
            return multiply_add(instruction, total, ("a", "b"), indices)

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
        """Print the load of two neighbouring terms of a row: register ``number`` of fragment
        ``i``."""
        place, term = f"places[{(i * 2 + number % 2).text}]", number // 2 * 2
        first, second = (f"terms[{(term + e).text}]" for e in (0, 1))
        register = f"a[{i.text}][{number.text}]"
        if self.plan.image.runs.paired:
            return [f"{register} = tw::load_shared<u32>({place} + {first}) & (u32){second};"]
        values = [f"(u32)tw::load_shared<u16>({place} + {at})" for at in (first, second)]
        low, high = (self._known(v, term, e, last) for e, v in enumerate(values))
        return [f"{register} = {low} | {high} << 16;"]

    def _known(self, value: str, term: Index, element: int, last: bool) -> str:
        """Return C text of a term's value, zero where its place is beyond the last term."""
        if not last:
            return value
        rest = self.plan.product.terms % FRAGMENT
        lane = f"(int)threadIdx.x % 4 * 2 + {(term * 4 + element).text}"
        return f"({lane} < {rest} ? {value} : 0u)"
