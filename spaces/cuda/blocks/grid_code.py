"""Kernels whose blocks each compute a tile of a product's output, or a part of its depth."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.cuda.abi import function
from tilewright.spaces.cuda.blocks.finish import SUM_TYPES, batch_parts, signature, sum_dtype
from tilewright.spaces.cuda.blocks.implicit import Tiled
from tilewright.spaces.cuda.blocks.partial_sums import PartialSums
from tilewright.spaces.cuda.blocks.segments import segments_of
from tilewright.spaces.cuda.blocks.sizes import BlockSizes
from tilewright.spaces.cuda.blocks.tile_grid import TileGrid
from tilewright.spaces.cuda.plan import Plan, Size
from tilewright.spaces.kernel import Call, Kernel, Launch, OpenGrid, Source, arguments
from tilewright.spaces.schedule import Value


@dataclass(frozen=True)
class GridCode(Plan, ABC):
    """The kernel named ``entry`` under the decisions ``values``, with these ``sizes``."""

    sizes: BlockSizes
    values: Mapping[str, Value]
    entry: str

    # -- what a template says ------------------------------------------------------------------

    @property
    @abstractmethod
    def grid(self) -> TileGrid:
        """The assignment of tiles to blocks."""

    @property
    @abstractmethod
    def sums_in_thread(self) -> int:
        """Sums that a thread has when blocks exchange theirs."""

    @property
    @abstractmethod
    def sum(self) -> str:
        """C text of sum number ``i`` of a thread."""

    @abstractmethod
    def tile_lines(self) -> list[str]:
        """Print the work of a block on its tile."""

    # -- what follows --------------------------------------------------------------------------

    @property
    def product(self) -> Tiled:
        """The product that is computed."""
        return self.sizes.product

    @property
    def block(self) -> tuple[int, int]:
        """Rows and columns of the output in a block's tile."""
        rows, columns = self.sizes.block(self.values)
        return int(rows), int(columns)

    @property
    def open_grid(self) -> OpenGrid | None:
        """The dependence of the launch on an open extent."""
        return self.grid.open_grid

    threads = Size()
    shared_bytes = Size()

    @property
    def kind(self) -> str:
        """The C type of the sums."""
        return SUM_TYPES[sum_dtype(self.product)]

    @cached_property
    def partial(self) -> PartialSums:
        """The exchange of sums between blocks that share a tile."""
        way = str(self.values["merge"])
        return PartialSums(self.grid, self.threads, self.sums_in_thread, self.kind, way, self.sum)

    def kernel(self, prelude: str) -> Kernel:
        """Return the kernel with its launch; ``prelude`` defines what the epilogue calls."""
        product = self.product
        launch = Launch(
            self.grid.blocks,
            (self.threads, 1, 1),
            shared_bytes=self.shared_bytes,
            open_grid=self.open_grid,
        )
        call = Call(
            self.entry,
            arguments(product.inputs, product.outputs),
            self.partial.workspace_bytes,
            self.partial.zeroed_bytes,
            (launch,),
        )
        return Kernel(Source("cuda", prelude, self.source), call)

    @property
    def source(self) -> str:
        """The CUDA C++ of the entry."""
        bounds = f"{self.threads}, {self.number('blocks_per_sm')}"
        parameters = signature(self.product, self.partial.is_needed)
        lines = [
            "const u32 shared = tw::shared_base();",
            *self.grid.number,
            *([] if segments_of(self.product) else batch_parts(self.product)),
            *self.grid.emit(self.tile_lines),
        ]
        return "\n".join(function(self.entry, bounds, parameters, lines)) + "\n"
