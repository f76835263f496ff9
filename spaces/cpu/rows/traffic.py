"""Work and memory traffic of rows; names and units are those of ``spaces.quantities``.

Operations include special functions, each counted as the terms of a polynomial. If a row stays in a
cache, only the first walk along it reads from further away. There is no packing and no epilogue.
Each walk along a row counts as a visit of a tile, and so does each array whose next row is not
prefetched; trips of the main loop are those of one walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.rows.held import outputs_by_element
from tilewright.spaces.cpu.rows.work import FORMS, registers, steps
from tilewright.spaces.cpu.traffic import USABLE, even_shares, footprints, stays_far
from tilewright.spaces.derivation.rows.addresses import RowAddress
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.quantities import filled
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.rows.template import RowsTemplate


def row_quantities(template: RowsTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    walks = _Walks(template, columns)
    quantities = {**_executed(walks), **_moved(walks), **_shared(walks)}
    return filled(quantities, columns["unroll"].shape)


class _Walks:
    """The walks along a row under the values of decisions: sums over them, and counts of rows and
    columns."""

    def __init__(self, template: RowsTemplate, columns: Columns) -> None:
        self.template, self.columns = template, columns
        self.rows = rows = template.rows
        self.row_count, self.width = float(rows.row_count), float(rows.column_count)
        self.across = columns["lanes"] == "rows"
        self.held = columns["intermediates"] != "again"
        self.places = {place for place in rows.places.values() if place.by_column}
        self._online = columns["passes"] == "online"
        self._steps = {
            (form, holds): steps(rows, template.passes(form), template.held if holds else None)
            for form in FORMS
            for holds in (False, True)
        }

    @property
    def count(self) -> Any:
        """The number of walks along a row."""
        return self._chosen(lambda walks: len(walks))

    @property
    def least_operations(self) -> float:
        """Operations for each element if nothing is computed twice."""
        return float(min(sum(s.operations for s in walks) for walks in self._steps.values()))

    def total(self, name: str) -> Any:
        """Return the sum of an attribute of :class:`Step` over all walks."""
        return self._chosen(lambda walks: sum(getattr(step, name) for step in walks))

    def _chosen(self, of: Any) -> Any:
        values: dict[tuple[str, bool], float] = {k: of(walks) for k, walks in self._steps.items()}
        online = np.where(self.held, values["online", True], values["online", False])
        plain = np.where(self.held, values["plain", True], values["plain", False])
        return np.where(self._online, online, plain).astype(np.float64)

    @property
    def inner(self) -> Any:
        """The number of elements along the axis that lanes run along."""
        return np.where(self.across, self.rows.rows[-1].extent, self.rows.columns[-1].extent)

    @property
    def vectors(self) -> Any:
        """The number of vectors that hold all elements."""
        lanes = self.template.lanes
        return self.row_count * self.width / self.inner * ceil_div(self.inner, lanes)

    @property
    def together(self) -> Any:
        """The number of rows of an item."""
        most, unroll = self.rows.rows[-1].extent, self.columns["unroll"]
        return np.where(self.across, np.minimum(unroll * self.template.lanes, most), 1)

    @property
    def items(self) -> Any:
        """The number of items: rows that are walked along, or groups of them."""
        last = self.rows.rows[-1].extent
        return self.row_count / last * ceil_div(last, self.together)


def _executed(walks: _Walks) -> dict[str, Any]:
    """Compute the operations, instructions and registers."""
    template, columns, vectors = walks.template, walks.columns, walks.vectors
    lanes, unroll = template.lanes, columns["unroll"]
    loads, stores = walks.total("loads"), walks.total("stores")
    once = walks.total("once") / np.where(walks.across, 1, unroll)
    operations = walks.total("operations") + once
    work, used = walks.row_count * walks.width, registers(template, columns)
    turns = np.maximum(1, walks.inner // (unroll * lanes))
    return {
        "flops": vectors * lanes * operations,
        "useful_flops": work * walks.least_operations,
        "instructions": vectors * (operations + loads + stores) + 8 * walks.count * walks.items,
        "register_bytes": template.element.bytes * lanes * vectors * (loads + stores),
        "epilogue_elements": 0.0,
        "registers": used,
        "register_fraction": used / template.cpu.vector_registers,
        "independent_chains": unroll,
        "vector_fraction": work / (vectors * lanes),
        "intensity": operations / np.maximum(loads, 1),
        "main_loop_trips": np.where(walks.across, walks.width, turns),
        "tile_visits": walks.items
        * (walks.count + len(walks.places) * np.logical_not(columns["prefetch"])),
    }


def _moved(walks: _Walks) -> dict[str, Any]:
    """Compute the bytes that move between caches and to memory, and those that have to fit."""
    template, cpu, count = walks.template, walks.template.cpu, walks.row_count
    read_row = sum(row_bytes(template.rows, place) for place in walks.places)
    written = outputs_by_element(walks.rows)
    written_row = sum(output.array.bytes for output in written) / count
    element, held = template.element.bytes, walks.held
    row = walks.together * (read_row + element * walks.width * held)
    near = np.where(row <= USABLE * cpu.l1_bytes, 1, walks.count) * read_row
    near = near + 2 * held * element * walks.width * (row > USABLE * cpu.l1_bytes) + written_row
    middle = np.where(row <= USABLE * cpu.l2_bytes, 1, walks.count) * read_row + written_row
    least = float(template.workload.least_bytes)
    allocated = written_row * count * (walks.columns["stores"] == "cached")
    resident = stays_far(cpu, least)
    return {
        "near_bytes": count * near,
        "middle_bytes": count * middle,
        "main_bytes": least + allocated * (not resident),
        "packing_bytes": 0.0,
        "far_fraction": least / cpu.l3_bytes,
        **footprints(cpu, row, row + walks.together * written_row),
    }


def _shared(walks: _Walks) -> dict[str, Any]:
    """Compute how the work is shared among workers."""
    workers = walks.columns["workers"]
    return {
        "synchronisations": workers > 1,
        **even_shares(walks.template.cpu, workers, walks.items),
    }


def row_bytes(rows: Rows, place: RowAddress) -> float:
    """Return the bytes that a walk along one row reads from an array."""
    element = rows.program.operand[place.array].element.bytes
    spans = zip(rows.columns, place.columns, strict=True)
    return float(element * np.prod([span.extent for span, step in spans if step]))
