"""Work and memory traffic of kernels of steps on a GPU; names and units are those of
``spaces.quantities``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.occupancy import Occupancy
from tilewright.spaces.cuda.scalar_math import CALL_INSTRUCTIONS
from tilewright.spaces.cuda.stepped.sizes import StepSizes
from tilewright.spaces.cuda.stepped.sources import Kind
from tilewright.spaces.cuda.target import VECTOR_BYTES, WARP
from tilewright.spaces.derivation.work import PLAIN, work
from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import Binary, Call, Negation
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns

if TYPE_CHECKING:
    from tilewright.spaces.cuda.stepped.template import CudaStepped

BOOKKEEPING = 6
"""Instructions of a thread at each step beside those that compute."""
DEPENDENT = 6.0
"""Issue slots until the result of an instruction can be used, as far as no other warp has any."""


def stepped_quantities(template: CudaStepped, columns: Columns) -> dict[str, np.ndarray]:
    """Return every quantity, one float64 array each."""
    c = widened(columns)
    sizes, view, target = template.sizes(c), template.view, template.cuda
    extent, rows = float(view.extent(view.position)), float(view.extent(*view.rows))
    threads = 1.0 * sizes.blocks * sizes.threads
    own = sum((sizes.terms(s) * _operations(s) for s in view.stages), start=0.0 * c["vector"])
    special = sum((sizes.terms(s) * _calls(s) for s in view.stages), start=0.0 * c["vector"])
    joins = _exchanges(sizes)
    loads, bytes = _loads(sizes)
    stores = sum(sizes.count(view.stage[output.name]) for output in view.outputs)
    each = own + special * CALL_INSTRUCTIONS + 2.0 * joins + loads + stores + BOOKKEEPING
    occupancy = Occupancy(target, sizes.blocks, sizes.threads, sizes.registers, sizes.shared_bytes)
    lanes = view.extent(view.lane)
    main, counted = float(template.workload.least_bytes), work(view.program)
    copied = rows * sizes.column_blocks * sizes.chunks * sizes.stage_bytes
    waits = occupancy.waits(1.0 * sizes.chunks / np.maximum(1, sizes.steps * (sizes.stages - 1)))
    return filled(
        {
            "flops": threads * extent * own,
            "useful_flops": float(max(1, counted.flops + counted.arithmetic)),
            "instructions": threads * extent * each / WARP * occupancy.starved + waits,
            "register_bytes": threads * extent * bytes,
            "near_bytes": copied,
            "middle_bytes": main + copied,
            "main_bytes": main,
            "packing_bytes": 0.0,
            "epilogue_elements": threads * extent * stores,
            "far_fraction": min(main / target.l2_bytes, 1e6),
            "vector_fraction": lanes / (1.0 * sizes.column_blocks * sizes.columns),
            "intensity": own / np.maximum(1.0, loads),
            "main_loop_trips": 1.0 * np.minimum(sizes.steps, extent),
            "tile_visits": 1.0 * sizes.blocks * sizes.chunks,
            "synchronisations": sizes.chunks * (1.0 * template.copies) + DEPENDENT * joins,
            **occupancy.quantities(sizes.vector),
            **occupancy.flight(sizes.stage_bytes * (sizes.stages - 1.0) / sizes.threads),
        },
        c["vector"].shape,
    )


def _operations(stage: Stage) -> float:
    """Count the operations of an element or a term of a stage."""
    kinds = (Binary, Negation)
    return float(bool(stage.reducer) + sum(isinstance(n, kinds) for n in stage.body.values()))


def _calls(stage: Stage) -> float:
    """Count the functions of an element or a term of a stage that take several instructions."""
    found = (n for n in stage.body.values() if isinstance(n, Call))
    return float(sum(node.function not in PLAIN for node in found))


def _exchanges(sizes: StepSizes) -> Any:
    """Count the exchanges of a thread at each step."""
    inner, stages = sizes.view.inner_of, sizes.view.stages
    reduced = sum(1 for stage in stages if stage.reducer and not inner(stage.axes))
    return reduced * sizes.vector * np.log2(1.0 * sizes.row_threads)


def _loads(sizes: StepSizes) -> tuple[Any, Any]:
    """Count the loads of a thread at each step, and their bytes."""
    loads, bytes = 0.0 * sizes.vector, 0.0 * sizes.vector
    for source in sizes.sources.values():
        if source.kind is not Kind.HELD:
            taken = 1.0 * sizes.elements(source.inner, source.by_lane) * source.array.element.bytes
            loads, bytes = loads + ceil_div(taken, VECTOR_BYTES), bytes + taken
    return loads, bytes
