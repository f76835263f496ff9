"""Work and memory traffic of rows; names and units are those of ``spaces.quantities``.

Operations include special functions, which count for what a polynomial takes. A row that stays in a
cache is read from further away by the first walk along it alone. There is neither packing nor an
epilogue. A tile is visited for each walk along a row, and once more for each array that nobody has
fetched ahead; the main loop is that of one walk.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from spaces.algebra.integers import ceil_div
from spaces.cpu.rows.held import outputs_by_element
from spaces.cpu.rows.work import registers, steps
from spaces.cpu.traffic import USABLE, even_shares, footprints, stays_far
from spaces.derivation.rows.place import Place
from spaces.quantities import filled
from spaces.template import Columns

if TYPE_CHECKING:
    from spaces.cpu.rows.template import RowsTemplate

FORMS = ("online", "plain")


def row_quantities(template: RowsTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Every quantity, one float64 array each."""
    rows, target, lanes = template.rows, template.cpu, template.lanes
    element = template.element.bytes
    count, width = float(rows.row_count), float(rows.column_count)
    across = columns["lanes"] == "rows"
    inner = np.where(across, rows.rows[-1].extent, rows.columns[-1].extent)
    vectors = count * width / inner * ceil_div(inner, lanes)
    unroll, workers = columns["unroll"], columns["workers"]
    held = columns["held"] != "again"
    found = _Walks(template, columns)
    walks, loads, stores = found.count, found.total("loads"), found.total("stores")
    operations = found.total("operations") + found.total("once") / np.where(across, 1, unroll)

    written = outputs_by_element(rows)
    places = {place for place in rows.places.values() if place.by_column}
    read_row = sum(_row_bytes(template, place) for place in places)
    written_row = sum(output.array.bytes for output in written) / count
    together = np.where(across, np.minimum(unroll * lanes, rows.rows[-1].extent), 1)
    row = together * (read_row + element * width * held)
    near = np.where(row <= USABLE * target.l1_bytes, 1, walks) * read_row
    near = near + 2 * held * element * width * (row > USABLE * target.l1_bytes) + written_row
    middle = np.where(row <= USABLE * target.l2_bytes, 1, walks) * read_row + written_row
    least = float(template.workload.least_bytes)
    allocated = written_row * count * (columns["stores"] == "cached")
    resident = stays_far(target, least)
    items = count / rows.rows[-1].extent * ceil_div(rows.rows[-1].extent, together)
    quantities: dict[str, Any] = {
        "flops": vectors * lanes * operations,
        "useful_flops": count * width * found.least_operations,
        "instructions": vectors * (operations + loads + stores) + 8 * walks * items,
        "register_bytes": element * lanes * vectors * (loads + stores),
        "near_bytes": count * near,
        "middle_bytes": count * middle,
        "main_bytes": least + allocated * (not resident),
        "packing_bytes": 0.0,
        "epilogue_elements": 0.0,
        "registers": registers(template, columns),
        "register_fraction": registers(template, columns) / target.vector_registers,
        "far_fraction": least / target.l3_bytes,
        "independent_chains": unroll,
        "vector_fraction": count * width / (vectors * lanes),
        "intensity": operations / np.maximum(loads, 1),
        "main_loop_trips": np.where(across, width, np.maximum(1, inner // (unroll * lanes))),
        "tile_visits": items * (walks + len(places) * np.logical_not(columns["ahead"])),
        "synchronisations": workers > 1,
        **footprints(target, row, row + together * written_row),
        **even_shares(target, workers, items),
    }
    return filled(quantities, unroll.shape)


class _Walks:
    """Sums over the walks along a row, by the values of ``passes`` and ``held``."""

    def __init__(self, template: RowsTemplate, columns: Columns) -> None:
        self._online = columns["passes"] == "online"
        self._held = columns["held"] != "again"
        rows = template.rows
        self._steps = {
            (form, holds): steps(rows, template.passes(form), template.held if holds else None)
            for form in FORMS
            for holds in (False, True)
        }

    @property
    def count(self) -> Any:
        """How often a row is walked along."""
        return self._chosen(lambda walks: len(walks))

    @property
    def least_operations(self) -> float:
        """Operations for each element if nothing is computed twice."""
        return float(min(sum(s.operations for s in walks) for walks in self._steps.values()))

    def total(self, name: str) -> Any:
        """The sum of what all steps say."""
        return self._chosen(lambda walks: sum(getattr(step, name) for step in walks))

    def _chosen(self, of: Any) -> Any:
        values: dict[tuple[str, bool], float] = {k: of(walks) for k, walks in self._steps.items()}
        online = np.where(self._held, values["online", True], values["online", False])
        plain = np.where(self._held, values["plain", True], values["plain", False])
        return np.where(self._online, online, plain).astype(np.float64)


def _row_bytes(template: RowsTemplate, place: Place) -> float:
    """What a walk along one row reads there."""
    element = template.rows.program.operand[place.array].element.bytes
    spans = zip(template.rows.columns, place.columns, strict=True)
    return float(element * np.prod([span.extent for span, step in spans if step]))
