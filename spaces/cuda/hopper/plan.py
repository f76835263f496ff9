"""The numbers of one Hopper kernel: extents, roles of warpgroups, places in shared memory.

wgmma multiplies 64 rows at a time; the side of the product that they run along is called m, the
other n. If operands are swapped, m runs along the output's columns. ``spaces.cuda.hopper.sizes``
has the same resources for whole populations of schedules.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.finish import Finish, parameter_name
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.blocks.segment_list import SegmentList, list_bytes
from tilewright.spaces.cuda.blocks.segments import row_tiles, segments_of
from tilewright.spaces.cuda.hopper.fetched import fetched_of
from tilewright.spaces.cuda.hopper.grid import PersistentGrid
from tilewright.spaces.cuda.hopper.places import placed_tile
from tilewright.spaces.cuda.hopper.segments import TrimmedTile
from tilewright.spaces.cuda.hopper.sizes import HopperSizes
from tilewright.spaces.cuda.hopper.split import ClusterDepth, SharedDepth
from tilewright.spaces.cuda.hopper.storing.store import TileStore
from tilewright.spaces.cuda.hopper.streams import is_streamed
from tilewright.spaces.cuda.hopper.tile import OperandTile, ProductTile
from tilewright.spaces.cuda.hopper_pairs.product import OTHER, PairedProduct, finishing, twin_of
from tilewright.spaces.cuda.hopper_pairs.tile import pair_tile
from tilewright.spaces.cuda.plan import Number, Plan, Size
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.schedule import Value


@dataclass(frozen=True)
class HopperPlan(Plan):
    """The plan of a kernel on ``target`` under the decisions ``values``."""

    sizes: HopperSizes
    target: CudaTarget
    values: Mapping[str, Value]

    @property
    def product(self) -> Tiled:
        """The product that is computed."""
        return self.sizes.product

    # -- extents -------------------------------------------------------------------------------

    @property
    def swapped(self) -> bool:
        """True if m runs along the output's columns."""
        return bool(self.values["swap_ab"])

    @property
    def tile(self) -> tuple[int, int]:
        """Extents of a block's tile along m and n."""
        return self.number("block_m"), self.number("block_n")

    @property
    def written(self) -> tuple[int, int]:
        """Extents of the output that a tile covers along m and n.

        A tile of a pair of products holds columns of both, side by side, so that it covers half as
        many.
        """
        m, n = self.tile
        return (m, n // 2) if twin_of(self.product) else (m, n)

    consumers = Number()

    @property
    def takes_turns(self) -> bool:
        """True if each warpgroup computes whole tiles, in turn (ping-pong)."""
        return self.values["schedule"] == "pingpong"

    row_blocks = Size()
    threads = Size()
    stage_bytes = Size()

    @property
    def block_sums(self) -> int:
        """Sums of a thread in each block of 64 rows, one register each."""
        return self.tile[1] // 2

    @property
    def promotion(self) -> int:
        """Steps after which products are added to the sums by ordinary additions; 0 for never.

        wgmma on float8 keeps 14 bits of its sums (:data:`spaces.numerics.adding.IN_ONE_OF_FLOAT8`),
        so that long sums lose bits that adding up in float32 keeps.
        """
        return int(self.values.get("promotion_interval", 0))

    @property
    def streams(self) -> bool:
        """True if operands that are larger than L2 are loaded as the first to be evicted."""
        return bool(self.values.get("evict_first"))

    def load(self, tile: OperandTile, to: str, tensor_map: str, start: str) -> list[str]:
        """Print how a step of a tile is loaded.

        Lines read ``barrier``, ``depth0`` and ``first``.
        """
        priority = "first" if self.streams and is_streamed(tile.operand, self.target) else ""
        return tile.load(to, tensor_map, "barrier", start, "depth0", priority)

    stages = Number()

    @property
    def cluster(self) -> tuple[int, int]:
        """Tiles of a cluster along m and n."""
        m, n = self.sizes.cluster(self.values)
        return int(m), int(n)

    @property
    def cluster_tiles(self) -> int:
        """Tiles per cluster, which load operands for each other."""
        return self.cluster[0] * self.cluster[1]

    @property
    def sharers(self) -> tuple[int, int]:
        """The clusters that share a tile's depth, and the blocks of one cluster that do."""
        splits = self.number("splits")
        return (1, splits) if self.values["merge"] == "cluster" else (splits, 1)

    def _rows_and_columns(self, sides: tuple[int, int]) -> tuple[int, int]:
        """Return a pair for (m, n) as the pair for the output's rows and columns."""
        return (sides[1], sides[0]) if self.swapped else sides

    @property
    def axes(self) -> tuple[str, str]:
        """Names of the output's axes that m and n run along."""
        return ("column", "row") if self.swapped else ("row", "column")

    @cached_property
    def m(self) -> OperandTile:
        """The operand along m."""
        return self._operand(0)

    @cached_property
    def n(self) -> OperandTile:
        """The operand along n."""
        return self._operand(1)

    def _operand(self, side: int) -> OperandTile:
        """Return the operand along m (``side`` 0) or n (1).

        Tiles of a cluster that are neighbours along one side share the operand of the other side.
        """
        along_rows, product = (side == 0) != self.swapped, self.product
        depth_bytes = self.number("depth") * product.left.element.bytes
        size = (self.tile[side], depth_bytes, self.cluster[1 - side])
        if isinstance(product, PairedProduct) and not along_rows:
            return pair_tile(product, *size)
        if isinstance(product, ImplicitProduct):
            part = int(self.values.get("tail_rows", 0))
            return placed_tile(product, int(not along_rows), *size, part)
        if along_rows:
            return ProductTile(product.left, *size, product, product.row)
        return ProductTile(product.right, *size, product, product.column)

    @cached_property
    def grid(self) -> PersistentGrid:
        """The assignment of tiles to blocks."""
        block_rows, block_columns = self._rows_and_columns(self.tile)
        return PersistentGrid(
            (
                int(row_tiles(self.product, block_rows)),
                int(ceil_div(self.product.columns, block_columns)),
            ),
            self._rows_and_columns(self.cluster),
            int(ceil_div(self.product.terms, self.m.terms)),
            self.number("splits"),
            str(self.values["raster"]),
            self.number("raster_group"),
            self.target.multiprocessors * self.number("blocks_per_sm"),
            self.sharers[1] > 1,
            self.product.batches,
            block_rows if self.product.is_open else None,
            self.product.rows_each,
        )

    @cached_property
    def split(self) -> SharedDepth:
        """The exchange of sums through memory, between clusters that share a tile."""
        members = 1 if self.takes_turns else self.consumers
        tiles = self.product.batches * self.grid.places * self.cluster_tiles
        return SharedDepth(self.sharers[0], tiles, members, self.row_blocks, self.block_sums)

    @cached_property
    def slices(self) -> ClusterDepth:
        """The exchange of sums between the blocks of a cluster that share a tile."""
        return ClusterDepth(self.sharers[1], self.consumers, self.row_blocks, self.block_sums)

    @property
    def slice_columns(self) -> int:
        """Columns of a tile along n that one block finishes."""
        return self.written[1] // self.sharers[1]

    @cached_property
    def store(self) -> TileStore:
        """The store of sums to the output.

        The last tiles of a cluster may lie outside of the output altogether.
        """
        rows, columns = self._rows_and_columns(
            (self.written[0] * self.cluster[0], self.written[1] * self.cluster[1])
        )
        fetched = fetched_of(self.product) if self.values.get("fetch") else None
        beside = OTHER if twin_of(self.product) else fetched.name if fetched else None
        finish = Finish(finishing(self.product), rows, columns, fetched=beside)
        buffers = self.number("store_buffers")
        return TileStore(
            finish, self.swapped, self.row_blocks, self.slice_columns, buffers, fetched
        )

    @property
    def next_stage(self) -> str:
        """The C statement that moves on to the next stage of the ring."""
        return f"if (++stage == {self.stages}) {{ stage = 0; phase ^= 1; }}"

    # -- shared memory: stages, staging buffers, sums of other blocks, barriers, a word for each
    # warpgroup ------------------------------------------------------------------------------------

    @property
    def loaded_bytes(self) -> str:
        """C text of the bytes that the loads of a stage bring."""
        if self.trimmed is None:
            return str(self.stage_bytes)
        return f"{self.m.bytes} + parts * {self.trimmed.part_bytes}"

    @property
    def trimmed(self) -> TrimmedTile | None:
        """The tile along n, if only a part of it may be loaded and multiplied; else None."""
        return self.n if isinstance(self.n, TrimmedTile) else None

    @property
    def staging_at(self) -> int:
        """Offset of the staging buffers, the first warpgroup's first."""
        return self.stages * self.stage_bytes

    @property
    def staging_bytes(self) -> int:
        """Bytes of one warpgroup's staging buffers.

        They are as large as for whole tiles, so that slices of tiles fit where whole ones do.
        """
        return self.number("store_buffers") * int(self.sizes.buffer_bytes(self.values))

    @property
    def received_at(self) -> int:
        """Offset of the sums that other blocks send."""
        return self.staging_at + self.consumers * self.staging_bytes

    @property
    def full_at(self) -> int:
        """Offset of the barriers of full stages."""
        return self.received_at + self.slices.bytes

    @property
    def empty_at(self) -> int:
        """Offset of the barriers of empty stages."""
        return self.full_at + 8 * self.stages

    @property
    def exchanged_at(self) -> int:
        """Offset of the barrier that sums from other blocks of a cluster complete, if there are
        any."""
        return self.empty_at + 8 * self.stages

    @property
    def fetched_at(self) -> int:
        """Offset of each warpgroup's barrier for fetched operands, where there can be any."""
        return self.exchanged_at + 8 * (self.sharers[1] > 1)

    @property
    def slots_at(self) -> int:
        """Offset of each warpgroup's word, through which it learns its ticket."""
        can_fetch = fetched_of(self.product) is not None
        return self.fetched_at + 8 * self.consumers * can_fetch

    @property
    def segments(self) -> SegmentList | None:
        """The list of segments in shared memory, if rows come in segments; else None."""
        segments = segments_of(self.product)
        if segments is None:
            return None
        table = parameter_name(self.product, segments.table)
        rows, _ = self._rows_and_columns(self.tile)
        at = self.slots_at + 4 * self.consumers
        return SegmentList(segments, table, rows, self.threads, at)

    @property
    def shared_bytes(self) -> int:
        """Bytes of shared memory that a block takes."""
        return self.slots_at + 4 * self.consumers + list_bytes(segments_of(self.product))
