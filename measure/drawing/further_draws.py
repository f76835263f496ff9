"""The further problems, beside random ones, that candidates for the best are checked on."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.measure.drawing.edges import edges, with_edges
from tilewright.measure.drawing.few_terms import sparse_operands, with_few_terms
from tilewright.measure.drawing.interfaces import Draw
from tilewright.measure.drawing.programs import FINAL_POINTS, ProgramDraw
from tilewright.measure.drawing.tables import SHARE, tables_of, with_other_tables
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.workloads.workload import Workload

EDGE_SHARE = 16
"""Times that fewer points are judged of an edge than of another table."""


def further_draws(
    draw: Draw,
    most: int = FINAL_POINTS // SHARE,
    one_axis: bool = False,
    numerics: Numerics = Numerics.STRICT,
) -> Iterator[Draw]:
    """Yield the same problem with other tables, with few terms in its sums, and with edge inputs on
    which kernels of ``numerics`` are right."""
    if not has_further_draws(draw.workload):
        return
    if not isinstance(draw, ProgramDraw):
        draw = ProgramDraw(draw.workload, draw.inputs)
    yield from with_other_tables(draw, most, one_axis, numerics)
    yield from with_few_terms(draw, most, one_axis)
    yield from with_edges(draw, most // EDGE_SHARE, one_axis, numerics)


def has_further_draws(workload: Workload) -> bool:
    """Tell whether a workload has other problems than its first."""
    return count_further_draws(workload) > 0


def count_further_draws(workload: Workload) -> int:
    """Count the further problems of a workload."""
    program = workload.program
    return tables_of(program) + bool(sparse_operands(program)) + len(edges(program))
