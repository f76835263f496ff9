"""The CPU template of products with packed codes.

Decisions: rows of a tile, tiles of codes along the depth of a block, whether ``scales`` multiply
early or late, the way of ``decoding``, ``prefetch`` and ``workers``. It is a template of its
own: those of plain products read elements by strides, and have no place for words that hold codes
of several columns, for groups, or for tables. See ``spaces.cpu.low_bit.code`` for the kernel.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cpu.abi import ABI_PRELUDE, FLOAT, Code
from tilewright.spaces.cpu.loops.prelude import HELPERS
from tilewright.spaces.cpu.low_bit.decoding import SHUFFLED, Decoding, table_vectors, ways
from tilewright.spaces.cpu.low_bit.served import why_not
from tilewright.spaces.cpu.low_bit.traffic import coded_quantities, decoding_cost
from tilewright.spaces.cpu.target import CpuTarget
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.cpu.vectors import simd
from tilewright.spaces.derivation.products.coded import CodedProduct, coded_product_of
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.low_bit.order import DEPTH, ROWS
from tilewright.spaces.low_bit.served import known_zero
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision, Rule
from tilewright.spaces.workloads.workload import Workload

MOST_ROWS = 8
"""The most rows of a tile: decoding is a small part of the work then."""
HEIGHTS = (1, 2, 4, MOST_ROWS)
"""Rows of a tile of a segment of rows."""
BLOCKS = (2, 4, 8, 16, 32, 64)
"""Tiles of codes along the depth of a block."""
EARLY, LATE = "early", "late"
"""Values of the decision ``scales``: they multiply each value, or the sums of groups."""


class LowBit(CpuTemplate):
    """Products of activations and packed codes, with zero points and scales of groups."""

    name: ClassVar[str] = "low_bit"
    version: ClassVar[int] = 2
    refuses_products: ClassVar[str] = "no operand has packed codes"
    reads_codes: ClassVar[bool] = True
    terms_each: ClassVar[int] = 1
    """The terms that a lane of a multiplication adds."""

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        found = coded_product_of(self.workload.program)
        assert isinstance(found, CodedProduct)
        self.product = found
        self.decisions = (
            Decision("tile_rows", self._heights()),
            Decision("block_depth", BLOCKS),
            *self._arithmetic(),
            Decision("prefetch", (0, 1, 2, 4)),
            Decision("workers", tuple(range(1, self.cpu.threads + 1))),
        )
        self.rules = self._rules()

    def _heights(self) -> tuple[int, ...]:
        """List the rows of a tile; those of a segment are cut into such tiles and lower ones."""
        if self.product.segments is None:
            return self.product.row_parts(MOST_ROWS)
        return tuple(n for n in HEIGHTS if n <= self.product.row_count)

    def _arithmetic(self) -> tuple[Decision, ...]:
        """Return the decisions on how values are made and multiplied."""
        return (
            Decision("scales", (LATE, EARLY) if self.product.scale is not None else (LATE,)),
            Decision("decoding", ways(self._name, self.product.table is not None, self._lanes)),
        )

    @classmethod
    def refuses_on(cls, workload: Workload, cpu: CpuTarget) -> str | None:
        """Say why there is no kernel: no product of codes and activations, or groups or depths that
        do not fit."""
        return why_not(workload)

    @property
    def _name(self) -> str:
        return self.product.codes.dtype

    @property
    def _lanes(self) -> int:
        return self.cpu.lanes(FLOAT)

    def decoded(self, way: str) -> Decoding:
        """Return the way from codes to values that a schedule has."""
        return Decoding(
            name=self._name,
            table=self.product.table is not None,
            zero=known_zero(self.product)["zero"],
            lanes=self._lanes,
            shuffled=way == SHUFFLED,
        )

    def registers(self, values: Mapping[str, Any]) -> Any:
        """Compute the vectors in use: sums, those of groups, words, and a value of each factor."""
        late = np.asarray(values["scales"] == LATE) & (self.product.scale is not None)
        rows = values["tile_rows"]
        sums = np.where(rows == 1, 4, 2 * rows)
        vectors = table_vectors(self._name, self._lanes)
        words = min(dtype(self._name).bits, 4) + vectors * np.asarray(
            values["decoding"] == SHUFFLED
        )
        return sums + late * 2 * rows + words + 2

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """Compute quantities for columns of schedules: see ``spaces.cpu.low_bit.traffic``."""
        return coded_quantities(self, columns)

    def decoding_cost(self, columns: Columns) -> np.ndarray:
        """Compute the instructions that make the other factor of a multiplication."""
        return decoding_cost(self, columns)

    def _code(self, schedule: Schedule, entry: str) -> Code:
        from tilewright.spaces.cpu.low_bit.code import CodedCode

        given, decoding = self.workload.operands, self.decoded(str(schedule.values["decoding"]))
        return CodedCode(self.product, decoding, given, schedule.values, entry)

    def _prelude(self) -> str:
        vectors = simd.prelude(self.cpu.isa, self._lanes, self.cpu.bf16_dot)
        decoding = self.decoded(ways(self._name, self.product.table is not None, self._lanes)[0])
        return ABI_PRELUDE + vectors + decoding.prelude(self.cpu.isa) + HELPERS

    def _rules(self) -> tuple[Rule, ...]:
        tiles = ceil_div(self.product.columns, ROWS)
        deep = ceil_div(self.product.terms, DEPTH)
        longest = next((n for n in BLOCKS if n >= deep), BLOCKS[-1])
        most = self.cpu.vector_registers
        return (
            Rule(
                "idle_workers",
                ("workers",),
                lambda c: c["workers"] <= tiles,
                lambda c: f"{c['workers']} workers share {tiles} tiles of {ROWS} columns",
            ),
            Rule(
                "one_block",
                ("block_depth",),
                lambda c: c["block_depth"] <= longest,
                lambda c: (
                    f"blocks of {c['block_depth']} tiles are one, as are those of {longest}; "
                    f"the depth has {deep}"
                ),
            ),
            Rule(
                "whole_groups",
                ("block_depth",),
                lambda c: (c["block_depth"] * DEPTH >= self._group) | (c["block_depth"] == longest),
                lambda c: (
                    f"blocks of {c['block_depth'] * DEPTH} of the depth are smaller than groups "
                    f"of {self._group}"
                ),
            ),
            Rule(
                "registers",
                ("tile_rows", *(decision.name for decision in self._arithmetic())),
                lambda c: (c["tile_rows"] == 1) | (self.registers(c) <= most),
                lambda c: f"{int(self.registers(c))} vectors in use; there are {most} registers",
            ),
        )

    @property
    def _group(self) -> int:
        return self.product.group if self.product.group < self.product.terms else 1

    @property
    def ordered_row_bytes(self) -> int:
        """Bytes of a row of reordered activations."""
        return FLOAT * round_up(self.product.terms, DEPTH) // self.terms_each
