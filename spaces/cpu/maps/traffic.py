"""Work and memory traffic of a map; names and units are those of ``spaces.quantities``.

Every array moves once. Stores into the caches first fetch the lines that they overwrite; narrow
tiles touch lines of what turns more than once; what is transposed passes through L1 twice more,
and through L2 as a time of its own if L1 has no room for it.
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
from tilewright.spaces.cpu.traffic import USABLE, footprints, lines_held, shares, stays_far
from tilewright.spaces.derivation.maps.order import ROWS
from tilewright.spaces.derivation.maps.plane import Plane
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.derivation.work import Work, work
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.maps.template import MapTemplate

START = 40.0
"""Instructions in whose time a run begins: its page is looked up, and no line of it foreseen."""
PAGES = 64
"""Pages that the first table of any core knows."""
FEW_LINES = 2
"""Lines of a row whose stores leave room for reads among what a core waits for."""


def map_quantities(template: MapTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Every quantity, one float64 array each."""
    traffic = _Traffic(template, widened(columns))
    found = {**traffic.executed(), **traffic.moved(), **traffic.kept(), **traffic.divided()}
    return filled(found, columns["tile_rows"].shape)


@dataclass(frozen=True)
class _Traffic:
    """The quantities of schedules with these ``values`` of decisions, by what they are about."""

    template: MapTemplate
    values: Columns

    @property
    def plane(self) -> Plane:
        """What is computed."""
        return self.template.plane

    @property
    def registers(self) -> Registers:
        """What vectors hold."""
        return self.template.registers

    @cached_property
    def tiling(self) -> Tiling:
        """The tiles."""
        return self.template.tiling(self.values)

    @cached_property
    def elements(self) -> float:
        """Points of all loops."""
        return float(np.prod([loop.extent for loop in self.plane.view.loops]))

    @cached_property
    def planes(self) -> float:
        """Planes that the outer loops go through."""
        return self.elements / (self.plane.height * self.plane.width)

    @cached_property
    def row_vectors(self) -> Any:
        """Vectors of a row, those at the ends of tiles not whole ones."""
        width, tile, lanes = self.plane.width, self.tiling.tile_columns, self.registers.lanes
        return (width // tile) * ceil_div(tile, lanes) + ceil_div(width % tile, lanes)

    @cached_property
    def fraction(self) -> Any:
        """The share of lanes in use."""
        return self.plane.width / (self.row_vectors * self.registers.lanes)

    @cached_property
    def tiles(self) -> Any:
        """All tiles."""
        return self.planes * self.tiling.row_tiles * self.tiling.column_tiles

    @cached_property
    def streams(self) -> int:
        """Arrays that are read or written side by side."""
        return len(self.plane.view.loaded) + len(self.plane.view.outputs)

    # -- execution ---------------------------------------------------------------------------

    def executed(self) -> dict[str, Any]:
        """What cores do."""
        counted, lanes, unroll = self._counted, self.registers.lanes, self.values["unroll"]
        useful = float(counted.flops + counted.arithmetic + counted.special)
        operations = useful / self.elements + 20.0 * counted.special / self.elements
        vectors = self.planes * self.plane.height * self.row_vectors
        walked = np.logical_not(self.tiling.straight)  # row by row
        issued = vectors * (self.streams + operations + 3 / unroll) * walked
        columns, reads = self.tiling.tile_columns, len(self.plane.view.loaded)
        in_use, registers = self.streams * unroll, self.template.cpu.vector_registers
        return {
            "flops": useful / self.fraction,
            "useful_flops": useful,
            "instructions": issued + self._turning() + START * self._starts + 60 * self.tiles,
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

    def _turning(self) -> Any:
        """Instructions that transpose blocks in registers."""
        plane, side = self.plane, self.registers.side
        area = len(plane.transposed) * self.planes * plane.width * plane.height
        blocks = area / (float(side) * min(side, plane.height)) / self.fraction
        steps = 2 + np.log2(side) + 1.0 * self.tiling.asks + 1.0 * self.tiling.straight
        return blocks * side * steps * (1 + self.tiling.skew * side / plane.width)

    @property
    def _starts(self) -> Any:
        """Runs of neighbours that begin: rows of tiles as they are written, and columns as they are
        read to be turned, each as often as one waits for it. Those of the next tile are read while
        stores that leave the caches are waited for, unless many of these follow each other."""
        tiling, plane = self.tiling, self.plane
        high = np.minimum(tiling.tile_rows, plane.height)
        wide = np.minimum(tiling.tile_columns, plane.width)
        few = wide * self.registers.bytes <= FEW_LINES * LINE_BYTES
        together = np.where(tiling.turns_ahead & self.values["streaming_stores"] & few, 0.5, 1)
        waits = len(plane.transposed) * wide * self._waits(wide)
        return together * self.tiles * (len(plane.view.outputs) * high + waits)

    def _waits(self, wide: Any) -> Any:
        """How long columns that are read to be turned are waited for: twice as long where they were
        not asked for ahead, which helps where stores leave the caches to them; longer where the
        tile before did not read on to where they begin; and if their pages have no room in the
        table of a core."""
        tiling, values = self.tiling, self.values
        leave = tiling.straight | values["streaming_stores"]
        waits = np.where((values["prefetch"] != NOTHING) & leave, 1, 2)
        apart = np.where(values["order"] == ROWS, 1, 3) * np.where(wide > PAGES, 2, 1)
        return waits * np.where(tiling.straight, 1, apart)

    # -- memory ------------------------------------------------------------------------------

    @cached_property
    def passing(self) -> Any:
        """Bytes written and read again because they are transposed."""
        passing = 2.0 * self.elements * self.registers.bytes * len(self.plane.transposed)
        return np.where(self.tiling.straight, 0.0, passing)

    @cached_property
    def scratch(self) -> Any:
        """Bytes of what one worker transposes for a tile."""
        return self.tiling.scratch_bytes

    def moved(self) -> dict[str, Any]:
        """What goes from cache to cache, and to memory."""
        view, cpu = self.plane.view, self.template.cpu
        read, written = _bytes(view.loaded), _bytes(view.outputs)
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
        """Bytes that straight blocks move as slowly as if they came twice: what a strip without
        another beside it reads, of which one bank of L2 has all; and what is written in rows whose
        lines have no room in L1 together, those of all strips if none is behind another."""
        side, strips = self.registers.side, self.tiling.strips
        alone = self.tiling.tile_rows < STRIPS[0] * side
        rows = np.where(alone | (self.tiling.skew > 0), side, strips * side)
        apart = (self.plane.row_step(self.plane.view.outputs[0]) or 0) * self.registers.bytes
        crowded = np.maximum(0.0, 1 - lines_held(self.template.cpu, apart) / rows)
        return read * alone + written * crowded

    def kept(self) -> dict[str, Any]:
        """What has to have room."""
        cpu, columns = self.template.cpu, np.minimum(self.tiling.tile_columns, self.plane.width)
        footprint = self.scratch + self.registers.bytes * self.streams * columns
        return {
            **footprints(cpu, footprint, footprint),
            "far_fraction": float(self.template.workload.least_bytes) / cpu.l3_bytes,
        }

    # -- workers -----------------------------------------------------------------------------

    def divided(self) -> dict[str, Any]:
        """How the work is divided."""
        workers, tiling = self.values["workers"], self.tiling
        longest = np.stack(np.broadcast_arrays(*tiling.counts)).max(axis=0)
        return {
            **shares(self.template.cpu, workers, workers * tiling.share / longest),
            "synchronisations": workers > 1,
        }


def _bytes(accesses: Iterable[Access]) -> float:
    return sum(float(access.array.bytes) for access in accesses)
