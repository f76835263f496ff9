"""The micro-kernel: a tile of the output stays in vector registers over a loop along the depth.

It computes ``s[i, j] (+)= sum_k a[i, k] * b[k, j]`` for one tile of ``rows`` times ``vectors``
vectors, where k counts steps (see ``spaces.cpu.tiles.steps``); a step of two terms is one dot
instruction. Each accumulator is a variable of its own: an array of them would live in memory.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import cached_property, lru_cache

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.layout import Layout, Strided
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.cpu.abi import LINE, LINE_BYTES
from tilewright.spaces.cpu.tiles.steps import PAIR, element_bytes, multiply_add
from tilewright.spaces.cpu.tiles.tile_sums import TileSums
from tilewright.spaces.cpu.tiles.turns import MOST_STEPS, Turn, around_blocks
from tilewright.spaces.cpu.vectors.simd import C_TYPES

REMEMBERED = 512  # texts of tiles


@dataclass(frozen=True)
class RegisterTile:
    """A tile, with the layouts of what it reads and writes.

    ``columns`` need not fill the last vector. ``left`` (row, depth), ``right`` (depth, column) and
    ``sums`` (row, column) are the layouts at the arguments a, b and s; ``right_is_padded`` allows
    whole vectors of b to be read. If ``apart`` is positive, b is not packed in pairs: each pair is
    made of two bfloat16 elements that are ``apart`` elements apart.

    Vectors of b are prefetched ``prefetch`` steps deeper and ``prefetch_columns`` columns further
    on; 0 of both for none. ``prefetches_far`` tells that this place belongs to another tile.
    ``fetches_sums`` has the sums prefetched. ``ahead`` is the layout (run, element) of a further
    argument ``next``, whose elements are of ``ahead_dtype``: a share of what later tiles read
    first, prefetched from far away into L2.

    ``keeps_right`` keeps vectors of b in registers for any number of rows, not only for a few, and
    each sum in one register. GCC would rather move sums to registers of operands that are no longer
    needed, and spill others (see ``tw_used`` in ``spaces.cpu.isa``).

    With ``turns``, the outermost first, ``depth`` counts turns of the first loop, and each turn of
    the innermost has all steps of ``left``. ``excess`` is that of
    :class:`~spaces.cpu.tiles.tile_sums.TileSums`.
    """

    name: str = field(compare=False)
    rows: int
    columns: int
    lanes: int
    unroll: int
    prefetch: int
    left: Layout
    right: Layout
    sums: Strided
    left_dtype: str = "float32"
    right_dtype: str = "float32"
    right_is_padded: bool = True
    apart: int = 0
    prefetch_columns: int = 0
    prefetches_far: bool = False
    fetches_sums: bool = True
    keeps_right: bool = False
    ahead: Strided | None = None
    ahead_dtype: str = "float32"
    turns: tuple[Turn, ...] = ()
    excess: int = 0

    @property
    def vectors(self) -> int:
        """The number of vectors in a row of the tile."""
        return -(-self.columns // self.lanes)

    def source(self) -> list[str]:
        """Return the C function ``name(a, b, s, depth, accumulate)``; ``next`` is its last
        argument, if there is one."""
        a, b = C_TYPES[self.left_dtype], C_TYPES[self.right_dtype]
        ahead = f", const {C_TYPES[self.ahead_dtype]} *next" if self.ahead else ""
        left, right, depth = ("left", "right", "turns") if self.turns else ("a", "b", "depth")
        if self._is_deep:
            left, right, depth = "whole_a", "whole_b", "whole"
        return [
            f"static __attribute__((noinline)) void {self.name}(",
            f"    const {a} *restrict {left}, const {b} *restrict {right}, float *restrict s,",
            f"    long {depth}, int accumulate{ahead}) {{",
            *_body(self),
            "}",
        ]

    def body(self) -> list[str]:
        """Return the lines of the function's body: one loop over all steps, or one block of steps
        after the other, each with accumulators of its own."""
        if self.turns:
            return ["  int more = accumulate;", *(f"  {line}" for line in self._nest())]
        if not self._is_deep:
            return self._block(self._loops(), "accumulate")
        a, b = C_TYPES[self.left_dtype], C_TYPES[self.right_dtype]
        begin = index("begin")
        return [
            f"  for (long begin = 0; begin < whole; begin += {MOST_STEPS}) {{",
            f"    const {a} *a = whole_a + {self.left.emit(0, begin)};",
            f"    const {b} *b = whole_b + {self.right.emit(begin, 0)};",
            f"    const long depth = tw_least(whole - begin, {MOST_STEPS});",
            *(f"  {line}" for line in self._block(self._loops(), "accumulate || begin")),
            "  }",
        ]

    @property
    def _is_deep(self) -> bool:
        """True if there may be more steps than one accumulator takes."""
        return not self.turns and self.left.shape[1] > MOST_STEPS

    def _block(self, loops: Sequence[str], accumulate: str) -> list[str]:
        """Return the lines of some steps, and those that store their sums."""
        sums = TileSums(self.sums, self.columns, self.lanes, self.excess)
        return [
            *(f"  vf {c} = {{0}};" for c, _, _ in self._tasks),
            *(f"  {line}" for line in loops),
            *sums.stored(self._tasks, accumulate),
        ]

    @cached_property
    def _tasks(self) -> list[tuple[str, int, int]]:
        """The accumulator, the row and the first column of each vector of the tile."""
        tasks = repeat(self.rows, self.vectors).tasks(0)
        return [(f"c{i}_{j}", i, j * self.lanes) for i, j in tasks]

    def _nest(self) -> list[str]:
        """Return the loops of all turns, and all steps within them."""
        counts = [turn.extent for turn in self.turns]
        extents: list[int | str | None] = ["turns", *counts[1:]]
        outer = around_blocks(self.turns, self.left.shape[1])

        def turn(at: Sequence[Index]) -> list[str]:
            pairs = list(zip(at, self.turns, strict=True))
            left = sum((i * turn.left for i, turn in pairs), Index())
            right = sum((i * turn.right for i, turn in pairs), Index())
            return [
                f"const {C_TYPES[self.left_dtype]} *a = left + {left};",
                f"const {C_TYPES[self.right_dtype]} *b = right + {right};",
                f"const long depth = {self.left.shape[1]};",
                *self._loops(),
            ]

        def block(at: Sequence[Index]) -> list[str]:
            inner = around(slice(outer, None), lambda rest: turn((*at, *rest)), "t")
            return [*self._block(inner, "more"), "more = 1;"]

        def around(loops: slice, body: Callable[..., list[str]], prefix: str) -> list[str]:
            if not counts[loops]:
                return body(())
            turns = repeat(*counts[loops])
            return turns.emit(0, body, extents=tuple(extents[loops]), prefix=prefix)

        return around(slice(outer), block, "u")

    def _loops(self) -> list[str]:
        """Return the loop over all steps: first single ones, then whole turns of the unrolled loop.

        Each single step also prefetches one line of the sums and of ``next``. The sums are needed
        at the end: prefetched one line a step, they arrive in time and never keep the operands
        waiting.
        """
        asked = self._asked()
        fetches = max((lines.num_workers for lines, _ in asked), default=0)

        def single(k: Sequence[Index]) -> list[str]:
            lines = [line for asks in asked for line in self._ask(*asks, k[0], fetches)]
            return [*lines, *self._step(k)]

        start = f"{fetches} + (depth - {fetches}) % {self.unroll}"
        depth = self.left.shape[1]
        loops = [f"const long start = depth < {fetches} ? depth : {start};"]
        if fetches or self.unroll > 1:
            loops += repeat(fetches + self.unroll).emit(0, single, extents=("start",), prefix="f")
        turns = repeat(max(depth // self.unroll, 1)) * spatial(self.unroll)
        return loops + turns.emit(0, self._steps, extents=("depth",), base=("start",), prefix="k")

    def _asked(self) -> list[tuple[TaskMapping, Callable[..., str]]]:
        """Return the grids of lines to prefetch, each with the function that prefetches one."""
        asked: list[tuple[TaskMapping, Callable[..., str]]] = []
        if self.fetches_sums:
            lines = self.vectors + (self.sums.strides[0] % LINE > 0)
            asked.append((spatial(self.rows, lines), self._fetch))
        if self.ahead:
            runs, length = self.ahead.shape
            asked.append((spatial(runs, -(-length // self._ahead_line)), self._fetch_next))
        return asked

    @property
    def _ahead_line(self) -> int:
        return LINE_BYTES // element_bytes(self.ahead_dtype)

    def _ask(
        self, lines: TaskMapping, fetch: Callable[..., str], step: Index, steps: int
    ) -> list[str]:
        """Return the lines that prefetch the line of ``step``, which is less than ``steps +
        unroll``."""
        width = lines.task_shape[1]
        grid = spatial(-(-(steps + self.unroll) // width), width)
        asked = grid.emit(step, lambda line: [fetch(*line)])
        if lines.num_workers < steps:
            asked = [f"if ({step} < {lines.num_workers}) {{", *asked, "}"]
        return asked

    def _fetch_next(self, run: Index, line: Index) -> str:
        assert self.ahead is not None
        return f"__builtin_prefetch(next + {self.ahead.emit(run, line * self._ahead_line)}, 0, 2);"

    def _fetch(self, row: Index, line: Index) -> str:
        return f"__builtin_prefetch(s + {self.sums.emit(row, line * LINE)}, 1);"

    def _steps(self, indices: Sequence[Index]) -> list[str]:
        (start,) = indices
        lines = []
        for u in range(self.unroll):
            lines += ["{", *self._step((start + u,)), "}"]
        return lines

    def _step(self, indices: Sequence[Index]) -> list[str]:
        """Return one step of depth: vectors of b are loaded, then one row after the other
        multiplies."""
        (k,) = indices
        lines = [
            f"const {C_TYPES[self.left_dtype]} *ak = a + {self.left.emit(0, k)};",
            f"const {C_TYPES[self.right_dtype]} *bk = b + {self.right.emit(k, 0)};",
        ]
        if self.apart:
            lines += self._right_pairs()
        for j in range(self.vectors):
            if not self.apart:
                lines.append(f"const vf b{j} = {self._right_vector(j * self.lanes)};")
            lines += self._ahead(j * self.lanes)
        pairs = self.apart > 0 or self.right_dtype == PAIR
        for i in range(self.rows):
            place = f"ak + {self.left.offset(i, 0)}"
            lines.append(f"const vf a{i} = tw_splat_{self.left_dtype}({place});")
            lines += [
                multiply_add(f"c{i}_{j}", f"a{i}", f"b{j}", pairs) for j in range(self.vectors)
            ]
            lines += [f"tw_used(a{i});"] * self._keeps_sums
        lines += [f"tw_used(b{j});" for j in range(self.vectors) if self._keeps_sums]
        return lines

    @property
    def _keeps_sums(self) -> bool:
        return self.keeps_right and self.rows > 1 and self.vectors > 1

    def _right_vector(self, column: int) -> str:
        place, left = f"bk + {self.right.offset(0, column)}", self.columns - column
        vector = f"tw_load_{self.right_dtype}({place})"
        if left < self.lanes and not self.right_is_padded:
            vector = f"tw_load_first_{self.right_dtype}({place}, {left})"
        # For each of a few rows, GCC would rather load the vector again than keep it.
        keeps = self.rows > 1 if self.keeps_right else 1 < self.rows <= 4
        return f"tw_keep({vector})" if keeps else vector

    def _right_pairs(self) -> list[str]:
        """Load vectors of pairs: two at a time as long as two whole ones remain."""
        lines, j = [], 0
        while j < self.vectors:
            column = j * self.lanes
            place, left = f"bk + {self.right.offset(0, column)}", self.columns - column
            if left >= 2 * self.lanes:
                lines.append(f"const vw x{j} = tw_load_words({place});")
                lines.append(f"const vw y{j} = tw_load_words({place} + {self.apart});")
                lines.append(f"const vf b{j} = tw_low_pairs(x{j}, y{j});")
                lines.append(f"const vf b{j + 1} = tw_high_pairs(x{j}, y{j});")
                j += 2
            else:
                lines.append(f"const vf b{j} = tw_load_pairs({place}, {self.apart}, {left});")
                j += 1
        return lines

    def _ahead(self, column: int) -> list[str]:
        """Return the prefetches for the line of b that begins at ``column``.

        If rows are a multiple of a page apart, what is needed only after this whole tile would
        evict itself from L1, so that it is prefetched to L2. The last element of a line is
        prefetched, which also covers a line that two misaligned tiles share.
        """
        line = LINE_BYTES // element_bytes(self.right_dtype)
        if column % line or not (self.prefetch or self.prefetch_columns):
            return []
        hint, last = (", 0, 2", line - 1) if self.prefetches_far else ("", 0)
        ahead = self.right.emit(self.prefetch, column + self.prefetch_columns + last)
        places = [f"bk + {ahead}", *([f"bk + {ahead} + {self.apart}"] * (self.apart > 0))]
        return [f"__builtin_prefetch({place}{hint});" for place in places]


@lru_cache(maxsize=REMEMBERED)
def _body(tile: RegisterTile) -> Sequence[str]:
    """Return the lines of a tile's function; a search tries the same tiles in many kernels."""
    return tuple(tile.body())
