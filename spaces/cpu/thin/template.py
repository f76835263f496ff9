"""The CPU templates for products of few rows (a batch of 1 to 16 through a layer).

Such a product moves the whole right operand through the core for a few FMAs an element, so that it
is bound by memory: none of the right operand is packed, and its bytes are read in the order in
which they lie. ``ThinStream`` serves an operand that is contiguous along columns (lanes along
columns), ``ThinDots`` one that is contiguous along the depth (lanes along the depth),
``ThinPacked`` one in packed panels (lanes along columns; each panel is read from its beginning to
its end).
"""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import FLOAT, Code, c_kernel
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.thin.blocking import THIN_ROWS, ThinBlocking, thin_blocking
from tilewright.spaces.cpu.thin.rules import thin_rules
from tilewright.spaces.cpu.thin.traffic import thin_quantities
from tilewright.spaces.cpu.tiles.panels import why_not_packed, why_not_thin
from tilewright.spaces.cpu.vectors.simd import FLOATS
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.open_axis import why_no_open_batch, why_no_open_rows
from tilewright.spaces.workloads.packing import PANEL
from tilewright.spaces.workloads.product import Product
from tilewright.spaces.workloads.several import product_writing
from tilewright.spaces.workloads.workload import Workload

FEW_ROWS = 3
"""The most rows for which memory alone counts: whole rows of the right operand are then read a few
at a time, and prefetched."""
DEPTHS = tuple(2**i for i in range(10, 15))
"""Terms of a block of an operand that is contiguous along the depth."""
UNBOUNDED = 2**30
"""The bound of a block that has all columns."""


class Thin(CpuTemplate):
    """The base of the templates for few rows, which ``dots`` and ``packed`` tell apart."""

    version: ClassVar[int] = 5
    dots: ClassVar[bool]
    packed: ClassVar[bool] = False

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        product = product_writing(workload, packed=True, sliced=True)
        assert isinstance(product, Product)
        self.product = product
        self.lanes = self.cpu.lanes(FLOAT)
        self.terms = 2 if self._has_pairs() else 1
        self.few = self.product.rows <= FEW_ROWS
        workers = self.cpu.even_workers
        self.decisions = (
            Decision("tile_rows", _even_parts(self.product.rows)),
            *self._tile_decisions(),
            Decision("column_workers", workers),
            Decision("batch_workers" if self.product.batch else "depth_workers", workers),
            Decision("pack_left", (False, True)),
        )
        self.rules = thin_rules(self)

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: too many rows, another order of the right operand, or no
        product."""
        for operand in workload.operands:
            if operand.dtype not in FLOATS:
                return f"{operand.name} is {operand.dtype}; allowed: {', '.join(FLOATS)}"
        product = product_writing(workload, packed=True, sliced=True)
        if isinstance(product, str):
            return product
        if product.rows > THIN_ROWS:
            return f"needs at most {THIN_ROWS} rows along {product.row}; there are {product.rows}"
        if product.right.packed is not cls.packed:
            return f"{product.right.name} is {'' if product.right.packed else 'not '}packed"
        if cls.packed:
            return why_not_packed(product, cpu) or why_not_thin(product)
        if product.right_runs_deep is not cls.dots:
            wanted = product.depth if cls.dots else product.column
            return f"needs {product.right.name} to be contiguous along {wanted}"
        return None

    def blocks(self, values: Mapping[str, Any]) -> ThinBlocking:
        """Return the extents that decisions lead to, for one schedule or for columns of many."""
        return thin_blocking(self.product, self.tile_columns(values), self.complete(values))

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.thin.traffic``."""
        return thin_quantities(self, columns)

    def why_not_open(self, schedule: Schedule, axis: str) -> str | None:
        """Say why an axis cannot be open: only that of rows can, or the slowest of a batch."""
        why_not = why_no_open_batch if self.product.batch else why_no_open_rows
        return why_not(self.product, axis)

    def lower_open(self, schedule: Schedule, axis: str) -> Kernel:
        """Return the kernel of any number of rows or of products, up to the product's."""
        opened = {"batch_is_open" if self.product.batch else "is_open": True}
        code = self._code(schedule, f"{self.entry(schedule)}_open", **opened)
        return c_kernel(self.workload, self._prelude(), code)

    def _code(self, schedule: Schedule, entry: str, **opened: bool) -> Code:
        from tilewright.spaces.cpu.thin.code import ThinCode

        values = schedule.values
        return ThinCode(
            self.product,
            values,
            self.blocks(values),
            self.lanes,
            entry,
            dots=self.dots,
            terms=self.terms,
            blocks_ahead=self.few and not self.packed,
            **opened,
        )

    def _has_pairs(self) -> bool:
        """Tell whether the dot instruction applies: it does twice the work of an FMA, so that it
        always pays."""
        dtypes = {operand.dtype for operand in self.product.matmul.factors}
        product = self.product
        pairs = dtypes == {"bfloat16"} and product.has_pairs(product.left)
        right = not product.right_runs_deep or product.has_pairs(product.right)
        return self.cpu.bf16_dot and pairs and right

    @abstractmethod
    def tile_columns(self, values: Mapping[str, Any]) -> Any:
        """Compute the columns of a tile."""

    @abstractmethod
    def registers(self, values: Mapping[str, Any]) -> Any:
        """Compute the vector registers that a tile takes."""

    @abstractmethod
    def chains(self, values: Mapping[str, Any]) -> Any:
        """Compute the number of independent accumulations of a tile."""

    @abstractmethod
    def complete(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the decisions, completed by those that this template leaves no choice for."""

    @abstractmethod
    def _tile_decisions(self) -> tuple[Decision, ...]: ...


class ThinStream(Thin):
    """Lanes along columns: whole rows of the right operand are read, a few at a time."""

    name: ClassVar[str] = "thin_stream"
    dots: ClassVar[bool] = False

    def tile_columns(self, values: Mapping[str, Any]) -> Any:
        """Compute the columns of a tile: whole vectors."""
        return values["tile_vectors"] * self.lanes

    def registers(self, values: Mapping[str, Any]) -> Any:
        """Compute the registers: accumulators, one vector of the right operand, one broadcast."""
        return values["tile_rows"] * values["tile_vectors"] + 2

    def chains(self, values: Mapping[str, Any]) -> Any:
        """Compute the number of accumulators."""
        return values["tile_rows"] * values["tile_vectors"]

    def complete(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return the decisions, for all are made."""
        return values

    def _tile_decisions(self) -> tuple[Decision, ...]:
        widest = self.cpu.l2_bytes // (4 * FLOAT * self.product.rows)
        widest = 1 << (max(widest, 1024).bit_length() - 1)
        return (
            Decision("tile_vectors", (1, 2, 3, 4, 6, 8)),
            Decision("block_depth", tuple(2**i for i in range(3, 10))),
            Decision("block_columns", (widest // 4, widest)),
            Decision("prefetch", (0, 1, 2) if self.few else (0, 1, 2, 4)),
            Decision("unroll", (1, 2, 4)),
        )


class ThinPacked(ThinStream):
    """Lanes along columns of packed weights: a few panels at a time, each read from its beginning
    to its end."""

    name: ClassVar[str] = "thin_packed"
    version: ClassVar[int] = 1
    packed: ClassVar[bool] = True

    def complete(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the bound of all columns: these need no blocks, for nothing of them is used twice."""
        return {**values, "block_columns": UNBOUNDED}

    def _tile_decisions(self) -> tuple[Decision, ...]:
        whole = (n for n in (1, 2, 3, 4, 6, 8) if n * self.lanes % PANEL == 0)
        return (
            Decision("tile_vectors", tuple(whole)),
            Decision("block_depth", DEPTHS),
            Decision("prefetch", (0, 1, 2)),
            Decision("unroll", (1, 2, 4)),
        )


class ThinDots(Thin):
    """Lanes along the depth: a few columns at a time, each read from its beginning to its end."""

    name: ClassVar[str] = "thin_dots"
    dots: ClassVar[bool] = True

    def tile_columns(self, values: Mapping[str, Any]) -> Any:
        """Return the decision ``tile_columns``."""
        return values["tile_columns"]

    def registers(self, values: Mapping[str, Any]) -> Any:
        """Compute the registers: accumulators, the rows' vectors, one vector of the right
        operand."""
        return self.chains(values) + values["tile_rows"] + 1

    def chains(self, values: Mapping[str, Any]) -> Any:
        """Compute the number of accumulators: each result has as many as the loop is unrolled."""
        return values["tile_rows"] * values["tile_columns"] * values["unroll"]

    def complete(self, values: Mapping[str, Any]) -> Mapping[str, Any]:
        """Add the bound of all columns: these need no blocks, for nothing of them is used twice."""
        return {**values, "block_columns": UNBOUNDED}

    def _tile_decisions(self) -> tuple[Decision, ...]:
        return (
            Decision("tile_columns", (1, 2, 3, 4, 5, 6, 8, 12, 16)),
            Decision("block_depth", DEPTHS),
            Decision("prefetch", (0, 1, 2)),
            Decision("unroll", (1, 2)),
        )


def _even_parts(rows: int) -> tuple[int, ...]:
    """Return the heights of tiles if there are 1, 2, ... tiles, as even as they can be; each height
    once."""
    return tuple(sorted({ceil_div(rows, tiles) for tiles in range(1, rows + 1)}))
