"""Work and memory traffic of kernels with a state; names and units are those of
``spaces.quantities``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.traffic import CALL_INSTRUCTIONS, USABLE, even_shares, footprints
from tilewright.spaces.derivation.work import PLAIN
from tilewright.spaces.language.tree import Call
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

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
    calls = vectors / inner * CALL_INSTRUCTIONS * _calls(template)
    state = template.state_bytes(c)
    moved = 2.0 * vectors / c["positions"]
    scalars = steps * factors * (groups // c["vectors"])
    far = np.where(state <= USABLE * cpu.l1_bytes, 0.0, moved * cpu.vector_bytes)
    least = float(template.workload.least_bytes)
    return filled(
        {
            "flops": 2.0 * passes * vectors * lanes,
            "useful_flops": 4.0 * template.multiply_adds,
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
            "vector_fraction": template.multiply_adds / (vectors * lanes),
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


def _calls(template: RecurrentTemplate) -> float:
    """Count the special functions that expressions call."""
    nodes = {node for expression in template.view.expressions for node in expression.walk()}
    return float(sum(isinstance(n, Call) and n.function not in PLAIN for n in nodes))
