"""Work and memory traffic of kernels with a state; names and units are those of
``spaces.quantities``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.recurrent.position import is_ahead
from tilewright.spaces.cpu.traffic import CALL_INSTRUCTIONS, USABLE, even_shares, footprints
from tilewright.spaces.derivation.recurrent.view import Recurrence
from tilewright.spaces.derivation.work import PLAIN
from tilewright.spaces.language.tree import Call
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

POWERS = 3
"""Powers of a scale at each position: of what is kept, added and read."""

if TYPE_CHECKING:
    from tilewright.spaces.cpu.recurrent.template import RecurrentTemplate


def recurrent_quantities(template: RecurrentTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    c = widened(columns)
    view, cpu, lanes = template.view, template.cpu, template.lanes
    element, rows = template.element.bytes, view.extent(*view.rows)
    extent, inner = view.extent(view.position), view.extent(*view.inner)
    groups = ceil_div(view.extent(view.lane), lanes)
    steps = float(rows * extent * inner)
    vectors, items = steps * groups, rows * (groups // c["vectors"])
    factors = float(len([read for read in view.places if not read.axes.isdisjoint(view.inner)]))
    passes = 2.0 + (view.decay is not None)
    powers = rows * extent * (groups // c["vectors"]) * powers_of(view, lanes, c["vectors"])
    calls = CALL_INSTRUCTIONS * (vectors / inner * _calls(template) + powers)
    state = template.state_bytes(c)
    moved = 2.0 * vectors / c["positions"]
    scalars = steps * factors * (groups // c["vectors"])
    far = np.where(state <= USABLE * cpu.l1_bytes, 0.0, moved * cpu.vector_bytes)
    least = float(template.workload.least_bytes)
    return filled(
        {
            "flops": 2.0 * passes * vectors * lanes,
            "useful_flops": 4.0 * template.points,
            "instructions": passes * vectors + moved + scalars + calls,
            "register_bytes": cpu.vector_bytes * (moved + scalars),
            "near_bytes": least + far,
            "middle_bytes": least,
            "main_bytes": least,
            "packing_bytes": 0.0,
            "epilogue_elements": steps / inner * groups * lanes,
            "registers": template.registers(c),
            "register_fraction": template.registers(c) / cpu.vector_registers,
            "independent_chains": c["vectors"],
            "vector_fraction": template.points / (vectors * lanes),
            "intensity": passes * vectors / (moved + scalars),
            "main_loop_trips": inner,
            "tile_visits": items * extent / c["positions"],
            "synchronisations": c["workers"] > 1,
            "far_fraction": least / cpu.l3_bytes,
            **footprints(cpu, state, state + element * least / max(1, rows * extent)),
            **even_shares(cpu, c["workers"], items),
        },
        c["vectors"].shape,
    )


def powers_of(view: Recurrence, lanes: int, vectors: Any) -> Any:
    """Count the vectors of powers of a position, in each group of so many vectors of lanes."""
    if view.decay is None:
        return 0
    if is_ahead(view):
        *others, last = view.inner
        return POWERS * view.extent(*others) * ceil_div(view.extent(last), lanes)
    inner = not view.decay.axes.isdisjoint(view.inner)
    across = view.lane in view.decay.axes
    return POWERS * (view.extent(*view.inner) if inner else 1) * (vectors if across else 1)


def _calls(template: RecurrentTemplate) -> float:
    """Count the special functions that expressions call."""
    nodes = {node for expression in template.view.expressions for node in expression.walk()}
    return float(sum(isinstance(n, Call) and n.function not in PLAIN for n in nodes))
