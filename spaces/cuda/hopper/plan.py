"""The numbers of a Hopper contraction: who multiplies what, and what lies where.

wgmma multiplies 64 rows at a time; the side of the product that they run along is called m, the
other n. Swapped, m runs along the output's columns.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.blocks.finish import Finish, parameter_name
from tilewright.spaces.cuda.blocks.implicit import ImplicitProduct, Tiled
from tilewright.spaces.cuda.blocks.segments import row_tiles, segments_of
from tilewright.spaces.cuda.hopper.fetched import fetched_of
from tilewright.spaces.cuda.hopper.grid import PersistentGrid
from tilewright.spaces.cuda.hopper.places import placed_tile
from tilewright.spaces.cuda.hopper.segments import SegmentList, TrimmedTile, list_bytes
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
    """A kernel on ``target`` under the decisions ``values``, whose ``sizes`` these are."""

    sizes: HopperSizes
    target: CudaTarget
    values: Mapping[str, Value]

    @property
    def product(self) -> Tiled:
        """What is computed."""
        return self.sizes.product

    # -- extents -------------------------------------------------------------------------------

    @property
    def swapped(self) -> bool:
        """Whether m runs along the output's columns."""
        return bool(self.values["swap_ab"])

    @property
    def tile(self) -> tuple[int, int]:
        """Extents along m and n of a block's tile."""
        return self.number("block_m"), self.number("block_n")

    @property
    def written(self) -> tuple[int, int]:
        """What it covers of the output along m and n: a pair's tile has columns of two products."""
        m, n = self.tile
        return (m, n // 2) if twin_of(self.product) else (m, n)

    consumers = Number()

    @property
    def takes_turns(self) -> bool:
        """Whether each warpgroup computes whole tiles, in turn (ping-pong)."""
        return self.values["schedule"] == "pingpong"

    blocks = Size()
    threads = Size()
    stage_bytes = Size()

    @property
    def registers(self) -> int:
        """Sums of a thread in each block."""
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
        """Whether operands that are larger than L2 are the first to leave it."""
        return bool(self.values.get("evict_first"))

    def load(self, tile: OperandTile, to: str, tensor_map: str, start: str) -> list[str]:
        """C lines by which a step of a tile comes; they read ``barrier``, ``depth0``, ``first``."""
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
        """Tiles of a cluster, which load for each other."""
        return self.cluster[0] * self.cluster[1]

    @property
    def parts(self) -> tuple[int, int]:
        """How many clusters share the depth of a tile, and how many blocks of one cluster."""
        splits = self.number("splits")
        return (1, splits) if self.values["merge"] == "cluster" else (splits, 1)

    def _rows_and_columns(self, sides: tuple[int, int]) -> tuple[int, int]:
        """What lies along m and n, put along the output's rows and columns."""
        return (sides[1], sides[0]) if self.swapped else sides

    @property
    def axes(self) -> tuple[str, str]:
        """What m and n run along in the output."""
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
        """Tiles next to each other along one side share the operand of the other side."""
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
        """Blocks to tiles."""
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
            self.parts[1] > 1,
            self.product.batches,
        )

    @cached_property
    def split(self) -> SharedDepth:
        """The exchange of sums between clusters that share tiles."""
        members = 1 if self.takes_turns else self.consumers
        tiles = self.product.batches * self.grid.places * self.cluster_tiles
        return SharedDepth(self.parts[0], tiles, members, self.blocks, self.registers)

    @cached_property
    def slices(self) -> ClusterDepth:
        """The exchange of sums between the blocks of a cluster that share a tile."""
        return ClusterDepth(self.parts[1], self.consumers, self.blocks, self.registers)

    @property
    def slice_columns(self) -> int:
        """Columns of a tile along n that one block finishes."""
        return self.written[1] // self.parts[1]

    @cached_property
    def store(self) -> TileStore:
        """The way of the sums to the output. A cluster's last tiles may stick out altogether."""
        rows, columns = self._rows_and_columns(
            (self.written[0] * self.cluster[0], self.written[1] * self.cluster[1])
        )
        fetched = fetched_of(self.product) if self.values.get("fetch") else None
        beside = OTHER if twin_of(self.product) else fetched.name if fetched else None
        finish = Finish(finishing(self.product), rows, columns, fetched=beside)
        buffers = self.number("store_buffers")
        return TileStore(finish, self.swapped, self.blocks, self.slice_columns, buffers, fetched)

    @property
    def next_stage(self) -> str:
        """C statement that moves on in the ring."""
        return f"if (++stage == {self.stages}) {{ stage = 0; phase ^= 1; }}"

    # -- shared memory: stages, staging buffers, sums of other blocks, barriers, a word for each
    # warpgroup ------------------------------------------------------------------------------------

    @property
    def loaded_bytes(self) -> str:
        """C text of the bytes of a stage that loads bring."""
        if self.trimmed is None:
            return str(self.stage_bytes)
        return f"{self.m.bytes} + parts * {self.trimmed.part_bytes}"

    @property
    def trimmed(self) -> TrimmedTile | None:
        """The tile along n, if only a part of it may be loaded and multiplied."""
        return self.n if isinstance(self.n, TrimmedTile) else None

    @property
    def staging_at(self) -> int:
        """Offset of the staging buffers, the first warpgroup's first."""
        return self.stages * self.stage_bytes

    @property
    def staging_bytes(self) -> int:
        """Bytes of one warpgroup's staging buffers: what whole tiles take, so that slices of
        tiles find room where whole ones do."""
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
        """Offset of the barrier that the sums of other blocks complete, where they are exchanged
        in a cluster."""
        return self.empty_at + 8 * self.stages

    @property
    def fetched_at(self) -> int:
        """Offset of the warpgroups' barriers for what is fetched, where something can be."""
        return self.exchanged_at + 8 * (self.parts[1] > 1)

    @property
    def slots_at(self) -> int:
        """Offset of the warpgroups' words."""
        can_fetch = fetched_of(self.product) is not None
        return self.fetched_at + 8 * self.consumers * can_fetch

    @property
    def segments(self) -> SegmentList | None:
        """The list of segments that rows come in, if they do."""
        segments = segments_of(self.product)
        if segments is None:
            return None
        table = parameter_name(self.product, segments.table)
        rows, _ = self._rows_and_columns(self.tile)
        at = self.slots_at + 4 * self.consumers
        return SegmentList(segments, table, rows, self.threads, at)

    @property
    def shared_bytes(self) -> int:
        """Shared memory of a block."""
        return self.slots_at + 4 * self.consumers + list_bytes(segments_of(self.product))
