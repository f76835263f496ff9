"""The CUDA C++ of a product with few rows: it streams the large operand through registers.

Every thread reads its own vectors of the large operand from memory into registers, those of the
next step before or while it multiplies. Nothing of it passes through shared memory (unless warps
read by rows), and no barrier stands in the loop. At the end the warps of a block, then the blocks
that share a tile, add up in a fixed order.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import TaskMapping, repeat, spatial
from tilewright.spaces.cuda.blocks.copies.tile_copy import position_type
from tilewright.spaces.cuda.blocks.finish import Finish, sum_dtype
from tilewright.spaces.cuda.blocks.grid_code import GridCode
from tilewright.spaces.cuda.blocks.tile_grid import TileGrid
from tilewright.spaces.cuda.blocks.unrolled import THREAD, unrolled
from tilewright.spaces.cuda.thin.large import LargeOperand
from tilewright.spaces.cuda.thin.matrices import MatrixInstructions, TransposedMatrices
from tilewright.spaces.cuda.thin.multiply import MultiplyAdds, Place, ThinMultiply
from tilewright.spaces.cuda.thin.sizes import ThinSizes
from tilewright.spaces.cuda.thin.small import SmallOperand
from tilewright.spaces.cuda.thin.tile import ThinTile
from tilewright.spaces.cuda.thin.ways import WAYS
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernel import OpenGrid
from tilewright.spaces.kernels.text import CUDA

CODE: dict[str, type[ThinMultiply]] = dict(
    zip(WAYS, (MultiplyAdds, MatrixInstructions, TransposedMatrices), strict=True)
)
"""The code of each way to multiply."""


@dataclass(frozen=True)
class ThinCode(GridCode):
    """A kernel of the thin template.

    Its shared memory holds the small operand and the slabs by which warps read rows; at the end,
    the sums of warps take their place.
    """

    sizes: ThinSizes

    @cached_property
    def tile(self) -> ThinTile:
        """The assignment of elements to threads in a step."""
        return ThinTile(self.sizes, self.values)

    @cached_property
    def multiply(self) -> ThinMultiply:
        """The code that multiplies."""
        return CODE[str(self.values["multiply"])](self.tile)

    @cached_property
    def grid(self) -> TileGrid:
        """The assignment of tiles of columns, and of parts of the depth, to blocks."""
        thin, columns = self.sizes.thin, self.tile.columns
        return TileGrid(
            1,
            int(ceil_div(thin.many, columns)),
            int(ceil_div(thin.terms, self.tile.depth)),
            splits=self.tile.number("splits"),
            batches=self.product.batches,
        )

    @property
    def open_grid(self) -> OpenGrid | None:
        """The dependence of the launch on an open number of columns."""
        thin = self.sizes.thin
        return None if thin.column_end == thin.many else OpenGrid(self.tile.columns)

    @cached_property
    def small(self) -> SmallOperand:
        """The way of the small operand to registers."""
        return SmallOperand(self.multiply, self.grid.depth_share, self._integer)

    @cached_property
    def large(self) -> LargeOperand:
        """The way of the large operand to registers."""
        return LargeOperand(self.tile, self.multiply, self._integer)

    @cached_property
    def place(self) -> Place:
        """The place in shared memory where sums of warps meet."""
        return Place(self.tile, dtype(sum_dtype(self.product)).bytes)

    @property
    def sums_in_thread(self) -> int:
        """Sums that a thread finishes."""
        return int(ceil_div(self._sums, self.threads))

    @property
    def sum(self) -> str:
        """C text of sum number ``i`` of a thread."""
        return "total[i]"

    def tile_lines(self) -> list[str]:
        """Print the work of a block on its columns; first reads of the large operand come first."""
        integer = self._integer
        return [
            f"const {integer} column0 = ({integer})tile_column * {self.tile.columns};",
            f"{integer} depth0 = ({integer})first_step * {self.tile.depth};",
            *self.multiply.declare(),
            *self.large.start(),
            *(line for stage in self.large.stages for line in self._declare(stage)),
            *self.large.load(self.large.stages[0]),
            *self.small.load(f"small{self.large.stages[0]}"),
            *self.small.stage(),
            *(self._loop_by_rows() if self.tile.by_rows else self._loop()),
            *self._fold(),
            *CUDA.written(self.partial.write),
            *self._finish(),
        ]

    # -- the loop ------------------------------------------------------------------------------

    def _declare(self, stage: str) -> list[str]:
        lines = self.large.declare(stage)
        if self.small.is_ahead:
            lines.append(f"{self.multiply.small_kind} small{stage}[{self.small.held}];")
        return lines

    def _loop(self) -> list[str]:
        """Print the loop over steps; a step is read while the one before is multiplied.

        With one stage, it is read before the next test of the loop.
        """
        stages = self.large.stages
        lines = self.small.start()
        if len(stages) == 1:
            body = [*self._multiply("0"), *self._go_on("step + 1", "0")]
            return [*lines, *CUDA.loop("step", "steps", body, unroll=1)]
        second = [*self._go_on("step + 2", "0"), *self._multiply("1")]
        body = [
            *self._go_on("step + 1", "1"),
            *self._multiply("0"),
            *CUDA.when("step + 1 < steps", second),
        ]
        return [*lines, *CUDA.loop("step", "steps", body, step=2, unroll=1)]

    def _go_on(self, step: str, stage: str) -> list[str]:
        """Print how ``step`` is read, if there is one."""
        lines = [
            *self.large.advance(),
            *self.large.load(stage),
            *self.small.load(f"small{stage}"),
        ]
        return CUDA.when(f"{step} < steps", lines)

    def _loop_by_rows(self) -> list[str]:
        """Print the loop of warps that read by rows.

        Vectors that were read go to the warp's slab; the next step is loaded while this one is
        multiplied from there.
        """
        more, small = "step + 1 < steps", self.small.load("small0")
        body = [
            *self.large.put(),
            "tw::sync_warp();",
            *CUDA.when(more, [*self.large.advance(), *self.large.load("0")]),
            *self._multiply("0"),
            "tw::sync_warp();",
            *(CUDA.when(more, small) if small else []),
        ]
        return [
            *self.small.start(),
            f"const u32 slab = shared + {self.tile.slab + self.small.shared_bytes};",
            *CUDA.loop("step", "steps", body, unroll=1),
        ]

    def _multiply(self, stage: str) -> list[str]:
        """Print how the step in the registers of ``stage`` is multiplied."""

        def run(at: tuple[Index, ...]) -> list[str]:
            (number,) = at
            lines, held = [], f"held{stage}"
            if self.tile.by_rows:
                own = repeat(self.tile.own[0])
                lines = [
                    f"u32 own[{4 * self.tile.own[0]}];",
                    *unrolled(own, 0, lambda c: self.large.take(c[0], number), "o"),
                ]
                held = "own"
            if self.small.is_ahead:
                return [*lines, *self.multiply.run(held, f"small{stage}", number, number)]
            return [
                *lines,
                f"{self.multiply.small_kind} small[{self.small.held}];",
                *self.small.fetch("small", number),
                *self.multiply.run(held, "small", number, Index()),
            ]

        lines = unrolled(repeat(self.tile.runs), 0, run, "r")
        advance = [] if self.small.is_ahead else [f"term0 += {self.tile.depth};"]
        return [*CUDA.block(*lines), *advance]

    # -- the end -------------------------------------------------------------------------------

    @property
    def _sums(self) -> int:
        """Sums of a block."""
        return self.sizes.thin.few * self.tile.columns

    @property
    def _elements(self) -> TaskMapping:
        """The mapping from threads to the sums that they finish, row after row."""
        return repeat(self.sums_in_thread) * spatial(self.tile.threads)

    def _fold(self) -> list[str]:
        """Print how the sums of all warps along the depth are added up."""
        parts, size = self.tile.warps[1], self.place.part_bytes

        def body(at: tuple[Index, ...]) -> list[str]:
            (element,) = at
            total = f"total[{(element // self.tile.threads).text}]"
            offset = index("part", parts) * size + element * self.place.bytes
            return [
                "#pragma unroll",
                f"for (int part = 0; part < {parts}; part++)",
                f"  {total} += tw::load_shared<{self.kind}>(shared + {offset});",
            ]

        return [
            *(["tw::sync_block();"] if self.small.is_shared or self.tile.by_rows else []),
            *self.multiply.fold("shared", self.place),
            "tw::sync_block();",
            f"{self.kind} total[{self.sums_in_thread}] = {{}};",
            *unrolled(self._elements, THREAD, body, "t", (self._sums,)),
        ]

    def _finish(self) -> list[str]:
        """Print how whole sums are finished and stored."""
        columns, output = self.tile.columns, Finish(self.product, *self.block)

        def body(at: tuple[Index, ...]) -> list[str]:
            (element,) = at
            place = self.sizes.thin.place(element // columns, index("column0") + element % columns)
            return output.store(*place, [f"total[{(element // self.tile.threads).text}]"])

        return unrolled(self._elements, THREAD, body, "f", (self._sums,), self._integer)

    @property
    def _integer(self) -> str:
        """The C type of positions."""
        return position_type(self.product)
