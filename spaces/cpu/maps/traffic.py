"""Work and memory traffic of a map; names and units are those of ``spaces.quantities``.

Every array moves once. Stores into the caches first fetch the lines that they overwrite. Narrow
tiles touch lines of transposed arrays more than once. Transposed copies pass through L1 twice more,
and through L2 if L1 has no room for them.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import LINE_BYTES
from tilewright.spaces.cpu.maps.registers import Registers
from tilewright.spaces.cpu.maps.straight import STRIPS
from tilewright.spaces.cpu.maps.tiling import NOTHING, Tiling
from tilewright.spaces.cpu.traffic import (
    CALL_INSTRUCTIONS,
    USABLE,
    footprints,
    lines_held,
    shares,
    stays_far,
)
from tilewright.spaces.derivation.maps.order import ROWS
from tilewright.spaces.derivation.maps.plane import Plane
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.derivation.work import Work, work
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.maps.template import MapTemplate

START = 40.0
"""The time in which a run of neighbours begins, in instructions: its page is looked up, and the
hardware has not prefetched its first line."""
PAGES = 64
"""Pages that the first-level TLB of any core holds."""
FEW_LINES = 2
"""Lines of a row up to which streaming stores leave a core room to wait for reads at the same
time."""


def map_quantities(template: MapTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    traffic = _Traffic(template, widened(columns))
    found = {**traffic.executed(), **traffic.moved(), **traffic.kept(), **traffic.divided()}
    return filled(found, columns["tile_rows"].shape)


@dataclass(frozen=True)
class _Traffic:
    """The quantities of schedules with the ``values`` of decisions, grouped by what they are
    about."""

    template: MapTemplate
    values: Columns

    @property
    def plane(self) -> Plane:
        """The plane that is computed."""
        return self.template.plane

    @property
    def registers(self) -> Registers:
        """The vectors that hold elements."""
        return self.template.registers

    @cached_property
    def tiling(self) -> Tiling:
        """The tiles."""
        return self.template.tiling(self.values)

    @cached_property
    def elements(self) -> float:
        """The number of points of all loops."""
        return float(np.prod([loop.extent for loop in self.plane.view.loops]))

    @cached_property
    def planes(self) -> float:
        """The number of planes that the outer loops go through."""
        return self.elements / (self.plane.height * self.plane.width)

    @cached_property
    def row_vectors(self) -> Any:
        """The number of vectors of a row, those at the ends of tiles included, which may be partly
        filled."""
        width, tile, lanes = self.plane.width, self.tiling.tile_columns, self.registers.lanes
        return (width // tile) * ceil_div(tile, lanes) + ceil_div(width % tile, lanes)

    @cached_property
    def fraction(self) -> Any:
        """The share of lanes in use."""
        return self.plane.width / (self.row_vectors * self.registers.lanes)

    @cached_property
    def tiles(self) -> Any:
        """The number of all tiles."""
        return self.planes * self.tiling.row_tiles * self.tiling.column_tiles

    @cached_property
    def streams(self) -> int:
        """The number of arrays that are read or written side by side."""
        return len(self.plane.view.loaded) + len(self.plane.view.outputs)

    # -- execution ---------------------------------------------------------------------------

    def executed(self) -> dict[str, Any]:
        """Compute the operations, instructions and registers."""
        counted, lanes, unroll = self._counted, self.registers.lanes, self.values["unroll"]
        useful = float(counted.flops + counted.arithmetic + counted.special)
        operations = useful / self.elements + CALL_INSTRUCTIONS * counted.special / self.elements
        vectors = self.planes * self.plane.height * self.row_vectors
        walked = np.logical_not(self.tiling.straight)  # row by row
        issued = vectors * (self.streams + operations + 3 / unroll) * walked
        columns, reads = self.tiling.tile_columns, len(self.plane.view.loaded)
        in_use, registers = self.streams * unroll, self.template.cpu.vector_registers
        return {
            "flops": useful / self.fraction,
            "useful_flops": useful,
            "instructions": issued + self._transposing() + START * self._starts + 60 * self.tiles,
            "register_bytes": self.registers.vector_bytes * vectors * self.streams + self.passing,
            "epilogue_elements": 0.0,
            "registers": np.minimum(
                in_use + self.registers.side * bool(self.plane.transposed), 1e9
            ),
            "register_fraction": np.minimum(1.0, in_use / registers),
            "independent_chains": unroll,
            "vector_fraction": self.fraction,
            "intensity": operations / reads if reads else operations,
            "main_loop_trips": np.minimum(columns, self.plane.width) / (lanes * unroll),
            "tile_visits": self.tiles,
        }

    @cached_property
    def _counted(self) -> Work:
        return work(self.plane.view.program)

    def _transposing(self) -> Any:
        """Compute the instructions that transpose blocks in registers."""
        plane, side = self.plane, self.registers.side
        area = len(plane.transposed) * self.planes * plane.width * plane.height
        blocks = area / (float(side) * min(side, plane.height)) / self.fraction
        steps = 2 + np.log2(side) + 1.0 * self.tiling.asks + 1.0 * self.tiling.straight
        return blocks * side * steps * (1 + self.tiling.skew * side / plane.width)

    @property
    def _starts(self) -> Any:
        """The number of starts of runs of neighbours that a core waits for, weighted by how long it
        waits.

        Runs are rows of tiles that are written, and columns of transposed arrays that are read.
        Reads for the next tile overlap with streaming stores, unless many of these follow each
        other.
        """
        tiling, plane = self.tiling, self.plane
        high = np.minimum(tiling.tile_rows, plane.height)
        wide = np.minimum(tiling.tile_columns, plane.width)
        few = wide * self.registers.bytes <= FEW_LINES * LINE_BYTES
        together = np.where(tiling.transposes_ahead & self.values["streaming_stores"] & few, 0.5, 1)
        waits = len(plane.transposed) * wide * self._waits(wide)
        return together * self.tiles * (len(plane.view.outputs) * high + waits)

    def _waits(self, wide: Any) -> Any:
        """Compute how often a column that is read to be transposed counts as the start of a run.

        It counts twice unless it was prefetched while streaming or straight stores leave the caches
        to prefetched lines. It counts more if the tile before did not read on to where it begins,
        and if there are more pages than the TLB holds.
        """
        tiling, values = self.tiling, self.values
        leave = tiling.straight | values["streaming_stores"]
        waits = np.where((values["prefetch"] != NOTHING) & leave, 1, 2)
        apart = np.where(values["order"] == ROWS, 1, 3) * np.where(wide > PAGES, 2, 1)
        return waits * np.where(tiling.straight, 1, apart)

    # -- memory ------------------------------------------------------------------------------

    @cached_property
    def passing(self) -> Any:
        """Bytes that are written and read again because they are transposed."""
        passing = 2.0 * self.elements * self.registers.bytes * len(self.plane.transposed)
        return np.where(self.tiling.straight, 0.0, passing)

    @cached_property
    def scratch(self) -> Any:
        """Bytes of one worker's transposed copies."""
        return self.tiling.scratch_bytes

    def moved(self) -> dict[str, Any]:
        """Compute the bytes that move between caches and to memory."""
        view, cpu = self.plane.view, self.template.cpu
        read, written = _bytes(view.loaded), view.written_bytes
        line = LINE_BYTES / self.registers.bytes
        touches = np.maximum(1.0, line / self.tiling.tile_rows)  # of a line of what turns
        near = read + written + _bytes(self.plane.transposed) * (touches - 1)
        near = near + self.tiling.straight * self._again(read, written)
        stored = written * np.where(self.values["streaming_stores"], 1.0, 2.0)
        least = self.template.workload.least_bytes
        beyond = not stays_far(cpu, least)
        in_l1 = self.scratch <= USABLE * cpu.l1_bytes
        return {
            "near_bytes": near,
            "middle_bytes": near,
            "main_bytes": least + (stored - written) * beyond,
            "packing_bytes": np.where(in_l1, 0.0, self.passing),
        }

    def _again(self, read: float, written: float) -> Any:
        """Compute the bytes that straight blocks move as slowly as if they moved twice.

        They are what a strip reads if no other is beside it, for then one bank of L2 holds all of
        it; and what is written to rows whose lines do not fit L1 together, those of all strips if
        none lags behind.
        """
        side, strips = self.registers.side, self.tiling.strips
        alone = self.tiling.tile_rows < STRIPS[0] * side
        rows = np.where(alone | (self.tiling.skew > 0), side, strips * side)
        apart = (self.plane.row_step(self.plane.view.outputs[0]) or 0) * self.registers.bytes
        crowded = np.maximum(0.0, 1 - lines_held(self.template.cpu, apart) / rows)
        return read * alone + written * crowded

    def kept(self) -> dict[str, Any]:
        """Compute the bytes that have to fit in the caches."""
        cpu, columns = self.template.cpu, np.minimum(self.tiling.tile_columns, self.plane.width)
        footprint = self.scratch + self.registers.bytes * self.streams * columns
        return {
            **footprints(cpu, footprint, footprint),
            "far_fraction": float(self.template.workload.least_bytes) / cpu.l3_bytes,
        }

    # -- workers -----------------------------------------------------------------------------

    def divided(self) -> dict[str, Any]:
        """Compute how the work is shared among workers."""
        workers, tiling = self.values["workers"], self.tiling
        longest = np.stack(np.broadcast_arrays(*tiling.counts)).max(axis=0)
        return {
            **shares(self.template.cpu, workers, workers * tiling.share / longest),
            "synchronisations": workers > 1,
        }


def _bytes(accesses: Iterable[Access]) -> float:
    return sum(float(access.array.bytes) for access in accesses)
