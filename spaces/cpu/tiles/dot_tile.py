"""The micro-kernel of a tile whose right operand is contiguous along the depth: dot products.

It computes ``s[i, j] (+)= sum_k a[i, k] * b[k, j]`` for ``rows`` times ``columns`` results. Lanes
run along the depth; each result has ``unroll`` vectors of partial sums, which are added up at the
end.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.tiles.steps import PAIR, multiply_add
from tilewright.spaces.cpu.vectors.simd import C_TYPES


@dataclass(frozen=True)
class DotTile:
    """A tile, with the layouts of what it reads and writes; ``left`` and ``right`` are contiguous
    along the depth.

    ``left`` (row, depth), ``right`` (depth, column) and ``sums`` (row, column) are the layouts at
    the arguments a, b and s. Both operands may be of pairs; the depth then counts steps (see
    ``spaces.cpu.tiles.steps``). Vectors of b are prefetched ``prefetch_columns`` columns ahead, or
    not at all if that is 0.
    """

    name: str
    rows: int
    columns: int
    lanes: int
    unroll: int
    prefetch_columns: int
    left: Layout
    right: Layout
    sums: Layout
    left_dtype: str = "float32"
    right_dtype: str = "float32"

    def source(self) -> list[str]:
        """Return the C function ``name(a, b, s, depth, accumulate)``."""
        a, b = C_TYPES[self.left_dtype], C_TYPES[self.right_dtype]
        depth, step = self.left.shape[1], self.lanes * self.unroll
        whole = repeat(max(depth // step, 1)) * spatial(step)
        rest = repeat(self.unroll) * spatial(self.lanes)
        return [
            f"static __attribute__((noinline)) void {self.name}(",
            f"    const {a} *restrict a, const {b} *restrict b, float *restrict s,",
            "    long depth, int accumulate) {",
            *(f"  vf {c} = {{0}};" for i, j in self._tasks() for c in self._chains(i, j)),
            f"  const long whole = depth - depth % {step};",
            *whole.emit(0, self._steps, extents=("whole",), prefix="k"),
            *rest.emit(0, self._rest, extents=("depth",), base=("whole",), prefix="t"),
            "  if (accumulate) {",
            *(f"    {self._place(i, j)} += {self._sum(i, j)};" for i, j in self._tasks()),
            "  } else {",
            *(f"    {self._place(i, j)} = {self._sum(i, j)};" for i, j in self._tasks()),
            "  }",
            "}",
        ]

    def _tasks(self) -> Iterator[tuple[int, ...]]:
        yield from repeat(self.rows, self.columns).tasks(0)

    def _chains(self, i: int, j: int) -> list[str]:
        return [f"c{i}_{j}_{u}" for u in range(self.unroll)]

    def _sum(self, i: int, j: int) -> str:
        return f"tw_sum({' + '.join(self._chains(i, j))})"

    def _place(self, i: int, j: int) -> str:
        return f"s[{self.sums.offset(i, j)}]"

    def _steps(self, indices: Sequence[Index]) -> list[str]:
        (k,) = indices
        lines = []
        for u in range(self.unroll):
            lines += ["{", *self._step(k + u * self.lanes, u, "tw_load_{}({})"), "}"]
        return lines

    def _rest(self, indices: Sequence[Index]) -> list[str]:
        (k,) = indices
        load = "tw_load_most_{}({}, left)"
        return [f"const long left = depth - ({k});", *self._step(k, 0, load)]

    def _step(self, k: Index, chain: int, load: str) -> list[str]:
        """Write one vector along the depth: it is loaded for all rows, then for one column after
        the other."""
        lines = []
        for i in range(self.rows):
            place = f"a + {self.left.emit(i, k)}"
            lines.append(f"const vf a{i} = {load.format(self.left_dtype, place)};")
        for j in range(self.columns):
            place = f"b + {self.right.emit(k, j)}"
            if self.prefetch_columns:
                # L2 is near enough, for this is needed only after the columns of
                # this tile.
                ahead = f"b + {self.right.emit(k, j + self.prefetch_columns)}"
                lines.append(f"__builtin_prefetch({ahead}, 0, 2);")
            lines.append(f"const vf b{j} = {load.format(self.right_dtype, place)};")
            lines += [
                multiply_add(f"c{i}_{j}_{chain}", f"a{i}", f"b{j}", self.right_dtype == PAIR)
                for i in range(self.rows)
            ]
        return lines
