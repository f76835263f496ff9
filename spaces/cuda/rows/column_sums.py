"""The CUDA C++ of sums over all rows, beside what is written of each row.

    dx[r, c] = f(x[r, c], sum[c](...))        dw[c] = sum[r](dy[r, c] * x[r, c])

    rows of a block:   own[c] += element          in registers, for the columns of each thread
    after all tiles:   workspace[part, c] = own[c]
    the next launch:   dw[c] = sum[part](workspace[part, c])

A part is what one row of threads of a block has added up, over all its tiles. A thread adds
``BLOCK`` rows at most to a number before it moves on, so that rounding errors grow slowly.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.block_sums import BLOCK
from tilewright.spaces.cuda.rows.context import Context
from tilewright.spaces.cuda.rows.outputs import stored
from tilewright.spaces.cuda.rows.sizes import partial_elements
from tilewright.spaces.cuda.rows.sweep import vectors
from tilewright.spaces.cuda.scalar_code import Value
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.kernel import Launch
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.program import Output

COLUMNS, PARTS = 8, 4
"""Lanes of a warp along columns, and along the parts that it adds up."""
JOINERS = 256
"""Threads of a block that adds up parts."""


@dataclass(frozen=True)
class ColumnSums:
    """The column sums of the kernel of ``context``, whose blocks have ``parts`` together, each of
    at most ``rows`` rows."""

    context: Context
    parts: int
    rows: int

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the sums of all parts."""
        real = 8 if self.context.real == "double" else 4
        return len(self._outputs) * self.parts * self._run * real

    def begun(self) -> list[str]:
        """Return the declarations of a thread's sums."""
        kinds = ("own", "sum") if self._is_long else ("own",)
        names = [f"{kind}{n}" for n, _ in enumerate(self._outputs) for kind in kinds]
        lines = [f"{self.context.real} {name}[{self._elements}] = {{}};" for name in names]
        return [*lines, *(["int added = 0;"] if self._is_long else [])]

    def tile_ends(self) -> list[str]:
        """Return the lines after each tile: what has added up a block of rows moves on."""
        at_once = self.context.at_once
        if not self._is_long:
            return []
        test = f"(added += {at_once}) > {BLOCK - at_once}"
        return CUDA.when(
            test, ["added = 0;", *self._each("sum{n}[e] += own{n}[e]; own{n}[e] = 0;")]
        )

    def ended(self) -> list[str]:
        """Return the lines after all tiles, which write the sums of a part."""
        context, vector = self.context, self.context.number("vector")
        cluster, rows = context.number("cluster"), context.number("block_rows")
        block = f"((i64)blockIdx.x / {cluster})" if cluster > 1 else "(i64)blockIdx.x"
        places = (
            f"{n * self.parts} + {block} * {rows} + group" for n, _ in enumerate(self._outputs)
        )
        pointers = [
            f"{context.real} *to{n} = ({context.real} *)workspace + ({place}) * {self._run};"
            for n, place in enumerate(places)
        ]
        stores = [
            f"tw::store_global(to{n} + column + i, own{n}[u * {vector} + i]);"
            for n, _ in enumerate(self._outputs)
        ]
        return CUDA.block(
            *(self._each("own{n}[e] += sum{n}[e];") if self._is_long else []),
            *pointers,
            f"const {context.integer} first = {context.first};",
            *vectors(context, CUDA.loop("i", vector, stores, unroll=True)),
        )

    def launch(self, entry: str) -> Launch:
        """Return the launch that adds up the parts, by the function ``entry``."""
        warps = ceil_div(self.context.rows.column_count, COLUMNS)
        blocks = ceil_div(warps * WARP, JOINERS)
        return Launch((blocks, len(self._outputs), 1), (JOINERS, 1, 1), entry=entry)

    def joining(self, entry: str) -> str:
        """Return the function ``entry``: a warp adds up all parts of some columns."""
        columns = self.context.rows.column_count
        lines = [
            f"const int lane = (int)threadIdx.x % {WARP};",
            f"const int warp = ((int)blockIdx.x * {JOINERS} + (int)threadIdx.x) / {WARP};",
            f"const int column = warp * {COLUMNS} + lane % {COLUMNS};",
            "double total = 0;",
            *CUDA.when(f"column < {columns}", self._parts_added()),
            *(
                f"total += tw::shuffle_xor(total, {COLUMNS << n});"
                for n in range((PARTS - 1).bit_length())
            ),
            *CUDA.when(f"column < {columns} && lane < {COLUMNS}", list(self._written())),
        ]
        return "\n".join(function(entry, JOINERS, self.context.parameters, lines)) + "\n"

    def _parts_added(self) -> list[str]:
        real = self.context.real
        start = f"(const {real} *)workspace + (i64)blockIdx.y * {self.parts * self._run} + column"
        add = f"total += (double)tw::load_global(from + (i64)part * {self._run});"
        added = CUDA.loop("part", self.parts, [add], first=f"lane / {COLUMNS}", step=PARTS)
        return [f"const {real} *from = {start};", *added]

    def _written(self) -> Iterator[str]:
        for n, output in enumerate(self._outputs):
            value = stored(Value(f"({self.context.real})total"), output)
            store = f"tw::store_global({self.context.arguments[output.name]} + column, {value});"
            yield from CUDA.when(f"blockIdx.y == {n}", [store])

    def _each(self, line: str) -> list[str]:
        lines = [line.format(n=n) for n, _ in enumerate(self._outputs)]
        return CUDA.loop("e", self._elements, lines, unroll=True)

    @property
    def _outputs(self) -> Sequence[Output]:
        return [o for o in self.context.rows.written if o.name in self.context.rows.summed]

    @property
    def _elements(self) -> int:
        """Columns of a thread."""
        return self.context.unroll * self.context.number("vector")

    @property
    def _run(self) -> int:
        return partial_elements(self.context.rows)

    @property
    def _is_long(self) -> bool:
        """True if sums are added up in blocks."""
        return self.rows > BLOCK
