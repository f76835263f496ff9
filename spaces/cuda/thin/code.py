"""The CUDA C++ of a product with few rows: a stream of the large operand, and what it meets.

Every thread reads its own vectors of the large operand from memory into registers, those of the
next step before or while it multiplies. Nothing of it passes through shared memory, and no barrier
stands in the loop. At the end the warps of a block, then the blocks that share a tile, add up in a
fixed order.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from spaces.algebra.index import Index, index
from spaces.algebra.integers import ceil_div
from spaces.algebra.mapping import TaskMapping, repeat, spatial
from spaces.algebra.mapping_emit import indented
from spaces.cuda.blocks.finish import SUM_TYPES, Finish, batch_parts, signature, sum_dtype
from spaces.cuda.blocks.partial_sums import PartialSums
from spaces.cuda.blocks.tile_copy import position_type
from spaces.cuda.blocks.tile_grid import TileGrid
from spaces.cuda.blocks.unrolled import THREAD, unrolled
from spaces.cuda.thin.large import LargeOperand
from spaces.cuda.thin.matrices import MatrixInstructions
from spaces.cuda.thin.multiply import MultiplyAdds, Place, ThinMultiply
from spaces.cuda.thin.product import ThinProduct
from spaces.cuda.thin.sizes import ThinSizes
from spaces.cuda.thin.small import SmallOperand
from spaces.cuda.thin.tile import ThinTile
from spaces.dtypes import dtype
from spaces.kernel import Call, Kernel, Launch, Source, arguments
from spaces.schedule import Value
from spaces.workloads.product import Product

WAYS: dict[str, type[ThinMultiply]] = {"fma": MultiplyAdds, "mma": MatrixInstructions}
"""How to multiply, by the decision ``multiply``."""


@dataclass(frozen=True)
class ThinCode:
    """The kernel called ``entry`` under the decisions ``values``, whose ``sizes`` these are."""

    sizes: ThinSizes
    values: Mapping[str, Value]
    entry: str

    @property
    def product(self) -> Product:
        """What is computed."""
        return self.sizes.product

    @property
    def thin(self) -> ThinProduct:
        """The product along its thin side."""
        return self.sizes.thin

    @cached_property
    def tile(self) -> ThinTile:
        """Who reads what."""
        return ThinTile(self.sizes, self.values)

    @cached_property
    def multiply(self) -> ThinMultiply:
        """How it is multiplied."""
        return WAYS[str(self.values["multiply"])](self.tile)

    @cached_property
    def grid(self) -> TileGrid:
        """Blocks to tiles of columns, and to parts of the depth."""
        return TileGrid(
            1,
            int(ceil_div(self.thin.many, self.tile.columns)),
            int(ceil_div(self.thin.terms, self.tile.depth)),
            splits=self.tile.number("splits"),
            batches=self.product.batches,
        )

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
        """Where sums of warps meet."""
        return Place(self.tile, dtype(sum_dtype(self.product.workload)).bytes)

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of the output in a block's tile."""
        rows, columns = self.sizes.block(self.values)
        return int(rows), int(columns)

    @property
    def threads(self) -> int:
        """Threads of a block."""
        return self.tile.threads

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block: the small operand and the slabs that warps read rows by; in
        their place, at the end, the sums of warps."""
        return int(self.sizes.shared_bytes(self.values))

    @cached_property
    def partial(self) -> PartialSums:
        """The exchange of sums between blocks."""
        way = str(self.values["exchange"])
        return PartialSums(self.grid, self.tile.threads, self._turns, self._kind, way, "total[i]")

    def kernel(self, prelude: str) -> Kernel:
        """The kernel as a whole; ``prelude`` defines what the epilogue calls."""
        threads = (self.threads, 1, 1)
        workload = self.product.workload
        call = Call(
            self.entry,
            arguments(workload.inputs, workload.outputs),
            self.partial.workspace_bytes,
            self.partial.zeroed_bytes,
            (Launch(self.grid.blocks, threads, shared_bytes=self.shared_bytes),),
        )
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The entry."""
        bounds = f"__launch_bounds__({self.tile.threads}, {self.tile.number('residency')})"
        parameters = signature(self.product, self.partial.is_needed)
        lines = [
            f'extern "C" __global__ void {bounds} {self.entry}({parameters}) {{',
            "  const u32 shared = tw::shared_base();",
            *indented(self.grid.number),
            *indented(batch_parts(self.product)),
            *indented(self.grid.emit(self._tile)),
            "}",
        ]
        return "\n".join(lines) + "\n"

    def _tile(self) -> list[str]:
        """What a block does with its columns; the first reads of the large operand come first."""
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
            *self.partial.lines(),
            *self._finish(),
        ]

    # -- the loop ------------------------------------------------------------------------------

    def _declare(self, stage: str) -> list[str]:
        lines = self.large.declare(stage)
        if not self.small.is_shared:
            lines.append(f"{self.multiply.small_kind} small{stage}[{self.small.held}];")
        return lines

    def _loop(self) -> list[str]:
        """A step is read while the one before is multiplied, or at least before the next test."""
        stages = self.large.stages
        lines = ["int term0 = 0;"] if self.small.is_shared else []
        if len(stages) == 1:
            body = [*self._multiply("0"), *self._go_on("step + 1", "0")]
            head = "for (int step = 0; step < steps; step++) {"
        else:
            second = [*self._go_on("step + 2", "0"), *self._multiply("1")]
            body = [
                *self._go_on("step + 1", "1"),
                *self._multiply("0"),
                "if (step + 1 < steps) {",
                *indented(second),
                "}",
            ]
            head = "for (int step = 0; step < steps; step += 2) {"
        return [*lines, "#pragma unroll 1", head, *indented(body), "}"]

    def _go_on(self, step: str, stage: str) -> list[str]:
        """Read ``step``, if there is one."""
        lines = [
            *self.large.advance(),
            *self.large.load(stage),
            *self.small.load(f"small{stage}"),
        ]
        return [f"if ({step} < steps) {{", *indented(lines), "}"]

    def _loop_by_rows(self) -> list[str]:
        """What was read goes to the warp's slab; the next step is on its way while it is
        multiplied from there."""
        more = "if (step + 1 < steps) {"
        small = self.small.load("small0")
        return [
            *(["int term0 = 0;"] if self.small.is_shared else []),
            f"const u32 slab = shared + {self.tile.slab + self.small.shared_bytes};",
            "#pragma unroll 1",
            "for (int step = 0; step < steps; step++) {",
            *indented(self.large.put()),
            "  tw::sync_warp();",
            *indented([more, *indented([*self.large.advance(), *self.large.load("0")]), "}"]),
            *indented(self._multiply("0")),
            "  tw::sync_warp();",
            *(indented([more, *indented(small), "}"]) if small else []),
            "}",
        ]

    def _multiply(self, stage: str) -> list[str]:
        """Multiply what ``stage`` holds."""

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
            if not self.small.is_shared:
                return [*lines, *self.multiply.run(held, f"small{stage}", number, number)]
            return [
                *lines,
                f"{self.multiply.small_kind} small[{self.small.held}];",
                *self.small.fetch("small", number),
                *self.multiply.run(held, "small", number, Index()),
            ]

        lines = unrolled(repeat(self.tile.runs), 0, run, "r")
        advance = [f"term0 += {self.tile.depth};"] if self.small.is_shared else []
        return ["{", *indented(lines), "}", *advance]

    # -- the end -------------------------------------------------------------------------------

    @property
    def _sums(self) -> int:
        """Sums of a block."""
        return self.thin.few * self.tile.columns

    @property
    def _turns(self) -> int:
        """Sums that a thread finishes."""
        return int(ceil_div(self._sums, self.tile.threads))

    @property
    def _elements(self) -> TaskMapping:
        """Thread to the sums that it finishes, rows after each other."""
        return repeat(self._turns) * spatial(self.tile.threads)

    def _fold(self) -> list[str]:
        """Add up the sums of all warps along the depth."""
        parts, size = self.tile.warps[1], self.place.part_bytes

        def body(at: tuple[Index, ...]) -> list[str]:
            (element,) = at
            total = f"total[{(element // self.tile.threads).text}]"
            offset = index("part", parts) * size + element * self.place.bytes
            return [
                "#pragma unroll",
                f"for (int part = 0; part < {parts}; part++)",
                f"  {total} += tw::load_shared<{self._kind}>(shared + {offset});",
            ]

        return [
            *(["tw::sync_block();"] if self.small.is_shared or self.tile.by_rows else []),
            *self.multiply.fold("shared", self.place),
            "tw::sync_block();",
            f"{self._kind} total[{self._turns}] = {{}};",
            *unrolled(self._elements, THREAD, body, "t", (self._sums,)),
        ]

    def _finish(self) -> list[str]:
        """Finish and store what is whole."""
        columns, output = self.tile.columns, Finish(self.product, *self.block)

        def body(at: tuple[Index, ...]) -> list[str]:
            (element,) = at
            place = self.thin.place(element // columns, index("column0") + element % columns)
            return output.store(*place, [f"total[{(element // self.tile.threads).text}]"])

        return unrolled(self._elements, THREAD, body, "f", (self._sums,), self._integer)

    @property
    def _integer(self) -> str:
        """C type of positions."""
        return position_type(self.product)

    @property
    def _kind(self) -> str:
        """C type of the sums."""
        return SUM_TYPES[sum_dtype(self.product.workload)]
