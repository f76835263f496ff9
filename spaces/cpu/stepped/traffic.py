"""Work and memory traffic of kernels of steps; names and units are those of
``spaces.quantities``."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.traffic import CALL_INSTRUCTIONS, USABLE, even_shares, footprints
from tilewright.spaces.derivation.work import PLAIN, work
from tilewright.spaces.language.tree import Call, Read
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cpu.stepped.template import SteppedTemplate

BESIDE = 3
"""Registers beside the vectors that are computed."""


def stepped_quantities(template: SteppedTemplate, columns: Columns) -> dict[str, np.ndarray]:
    """Compute every quantity, one float64 array each."""
    c = widened(columns)
    view, cpu, lanes = template.view, template.cpu, template.lanes
    extent, rows = view.extent(view.position), view.extent(*view.rows)
    groups = ceil_div(view.extent(view.lane), lanes)
    items = rows * (groups // c["vectors"])
    steps = float(rows * extent)
    passed = moved = scalars = calls = 0.0 * c["vectors"]
    for stage in view.stages:
        points = view.extent(*view.inner_of(stage.axes), *stage.over)
        lanes_apart = view.lane in (*stage.axes, *stage.over)
        wide = groups if lanes_apart else groups // c["vectors"]
        passed = passed + steps * points * wide
        nodes = [node for node in stage.body.values() if isinstance(node, Read)]
        alike = [node for node in nodes if view.lane not in node.axes]
        moved = moved + steps * points * wide * (len(nodes) - len(alike))
        scalars = scalars + steps * points * (groups // c["vectors"]) * len(alike)
        found = {n for n in stage.body.walk() if isinstance(n, Call) and n.function not in PLAIN}
        calls = calls + CALL_INSTRUCTIONS * steps * points * wide * len(found)
    state = template.state_bytes(c)
    far = np.where(state <= USABLE * cpu.l1_bytes, 0.0, moved * cpu.vector_bytes)
    least, useful = float(template.workload.least_bytes), work(view.program)
    outputs = float(sum(output.size for output in view.outputs))
    return filled(
        {
            "flops": 2.0 * passed * lanes,
            "useful_flops": float(max(1, useful.flops + useful.arithmetic)),
            "instructions": passed + moved + scalars + calls + passed / c["unroll"],
            "register_bytes": cpu.vector_bytes * (moved + scalars),
            "near_bytes": least + far,
            "middle_bytes": least,
            "main_bytes": least,
            "packing_bytes": 0.0,
            "epilogue_elements": outputs,
            "registers": c["vectors"] + BESIDE,
            "register_fraction": (c["vectors"] + BESIDE) / cpu.vector_registers,
            "independent_chains": c["vectors"],
            "vector_fraction": view.extent(view.lane) / (groups * lanes),
            "intensity": passed / (moved + scalars),
            "main_loop_trips": float(template.innermost),
            "tile_visits": items * extent,
            "synchronisations": c["workers"] > 1,
            "far_fraction": least / cpu.l3_bytes,
            **footprints(cpu, state, state + least / max(1, rows * extent)),
            **even_shares(cpu, c["workers"], items),
        },
        c["vectors"].shape,
    )
