"""The CUDA template of products with packed codes that stream through rings: what can be decided.

See ``spaces.cuda.low_bit_ring.code`` for the kernel and ``spaces.cuda.low_bit_ring.rules`` for what
is ruled out.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, ClassVar

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.loops.code import LIBRARY, PRELUDE
from tilewright.spaces.cuda.low_bit.pairs import PairDecoding
from tilewright.spaces.cuda.low_bit.served import (
    coded_product,
    fragment_rows,
    pairs_of,
    why_no_product,
)
from tilewright.spaces.cuda.low_bit_ring.code import RingCode
from tilewright.spaces.cuda.low_bit_ring.rules import ring_rules
from tilewright.spaces.cuda.low_bit_ring.sizes import RingSizes
from tilewright.spaces.cuda.low_bit_ring.traffic import ring_quantities
from tilewright.spaces.cuda.low_bit_ring.warpgroups import WarpgroupCode
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.template import CudaTemplate
from tilewright.spaces.derivation.products.coded import CodedProduct
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.quantities import widened
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.template import Columns, Decision
from tilewright.spaces.workloads.workload import Workload

MOST_TILES = 16
"""Tiles of a warp at most: more have too many sums."""
SPLITS = (1, 2, 4, 8)
TOGETHER = (1, 2, 3, 4, 5, 7, 14)
"""Tiles that a warp may multiply in turns."""


class LowBitRing(CudaTemplate):
    """Products of rows of 16-bit floats and packed codes, with zero points and scales of groups."""

    name: ClassVar[str] = "low_bit_ring"
    version: ClassVar[int] = 1
    refuses_products: ClassVar[str] = "no operand has packed codes"
    reads_codes: ClassVar[bool] = True
    feature: ClassVar[str] = "mma"
    needs: ClassVar[str] = "needs a target with tensor cores, such as cuda:sm_80"
    raised: ClassVar[bool] = False

    def __init__(self, workload: Workload, target: Target) -> None:
        super().__init__(workload, target)
        self.product = coded_product(workload)
        pairs = self._pairs_of(self.product)
        assert isinstance(pairs, PairDecoding)
        self.pairs = pairs
        rows = fragment_rows(self.product)
        has_early = self.product.scale is not None and not self.raised
        self.bulk = self.cuda.has("tma") and not self.product.chosen_row
        has_warpgroups = self.cuda.has("wgmma") and self.bulk and not self.raised
        ways = Decision("multiply", ("mma", "wgmma")) if has_warpgroups else None
        held = Decision("blocks_per_sm", (1, 2, 3)) if self.product.segments else None
        self.decisions = (
            *([ways] if ways else ()),
            Decision("tile_rows", rows),
            Decision("warp_tiles", self._tiles(rows)),
            Decision("warp_columns", (1, 2, 3, 4, 7, 8)),
            Decision("warp_depth", (1, 2, 3, 4, 6, 8, 12, 16)),
            Decision("stages", (2, 3, 4, 5, 6, 8, 12)),
            Decision("stage_depth", (1, 2, 4)),
            Decision("interleave", TOGETHER),
            *([held] if held else ()),
            Decision("splits", (1,) if held else SPLITS),
            Decision("scales", ("late", "early") if has_early else ("late",)),
        )
        self.rules = ring_rules(self.sizes, self.cuda, has_warpgroups)

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Refuse what is no product of codes and activations that tensor cores multiply."""
        if reason := why_no_product(workload):
            return reason
        pairs = cls._pairs_of(coded_product(workload))
        return pairs if isinstance(pairs, str) else None

    @classmethod
    def _pairs_of(cls, product: CodedProduct) -> PairDecoding | str:
        """Return the way from codes to what is multiplied, or why there is none."""
        return pairs_of(product)

    def sizes(self, values: Mapping[str, Any]) -> RingSizes:
        """Return the sizes of blocks under decisions."""
        return RingSizes(self.product, values, self.cuda.multiprocessors, self.pairs, self.raised)

    def _tiles(self, rows: tuple[int, ...]) -> tuple[int, ...]:
        """List the tiles a warp may have: even parts of those of a block, or of all where blocks
        take any."""
        shapes = [{"splits": splits, "tile_rows": each} for splits in SPLITS for each in rows]
        if self.product.segments:
            most = {self.sizes({}).tiles}
        else:
            most = {int(self.sizes(shape).most_tiles) for shape in shapes}
        found = {ceil_div(tiles, parts) for tiles in most for parts in range(1, tiles + 1)}
        return tuple(sorted(n for n in found if n <= MOST_TILES))

    def quantities(self, columns: Columns) -> dict[str, np.ndarray]:
        """See ``spaces.cuda.low_bit_ring.traffic``."""
        return ring_quantities(self.workload, self.sizes(widened(columns)), self.cuda)

    def lower(self, schedule: Schedule) -> Kernel:
        """Return the kernel; its entry is named after the workload and the schedule."""
        called = (LIBRARY[name] for name in sorted(LIBRARY.keys() & self.workload.functions))
        return self._code(schedule).kernel(PRELUDE + "".join(called))

    def layouts(self, schedule: Schedule) -> Iterable[str]:
        """See ``spaces.cuda.low_bit_ring.layouts``."""
        from tilewright.spaces.cuda.low_bit_ring.layouts import layouts

        return layouts(self._code(schedule))

    def _code(self, schedule: Schedule) -> RingCode:
        sizes = self.sizes(schedule.values)
        kind = WarpgroupCode if sizes.on_warpgroups else RingCode
        return kind(sizes, self.arguments, self.entry(schedule), self.bulk)


class LowBitRaised(LowBitRing):
    """The same with sums of larger numbers: zero points, and what whole numbers are raised by as
    bits of a fraction, are subtracted of finished sums of a group.

    That takes an instruction less for each pair of codes. One huge activation spoils sums that it
    is in, even where its code is the zero point. Scales have to multiply weights, whose rounding to
    16 bits is allowed then: without it sums of exact weights are allowed less than this costs.
    """

    name: ClassVar[str] = "low_bit_raised"
    version: ClassVar[int] = 1
    raised: ClassVar[bool] = True

    @classmethod
    def refuses_on(cls, workload: Workload, cuda: CudaTarget) -> str | None:
        """Refuse what the other refuses, codes that are no bits of a fraction, and weights without
        scales."""
        if reason := super().refuses_on(workload, cuda):
            return reason
        product = coded_product(workload)
        if product.scale is None:
            return (
                "no scale multiplies weights, so sums of larger numbers err by more than is allowed"
            )
        pairs = pairs_of(product)
        assert isinstance(pairs, PairDecoding)
        if not pairs.raises:
            return f"{pairs.decoding.name} is not within the fraction of {pairs.kind}"
        return None

    @classmethod
    def numerics_of(cls, workload: Workload) -> Numerics:
        """Return ``FAST``: errors are relative to the largest activation of a group."""
        return Numerics.FAST
