"""The further problems, beside random ones, that candidates for the best are checked on."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.measure.drawing.edges import edges, with_edges
from tilewright.measure.drawing.few_terms import quiet_operands, with_few_terms
from tilewright.measure.drawing.interfaces import Draw
from tilewright.measure.drawing.programs import FINAL_POINTS
from tilewright.measure.drawing.tables import SHARE, tables_of, with_other_tables
from tilewright.spaces.language.program import Program
from tilewright.spaces.workloads.computation import Computation
from tilewright.spaces.workloads.workload import Workload


def with_others(
    draw: Draw, most: int = FINAL_POINTS // SHARE, one_axis: bool = False
) -> Iterator[Draw]:
    """The same problem with other tables, with few terms in its sums, and with edge inputs."""
    yield from with_other_tables(draw, most, one_axis)
    yield from with_few_terms(draw, most, one_axis)
    yield from with_edges(draw, one_axis=one_axis)


def has_others(workload: Workload) -> bool:
    """Tell whether a workload has other problems than its first."""
    return isinstance(workload, Computation) and count(workload.program) > 0


def count(program: Program) -> int:
    """Count the further problems of a program."""
    return tables_of(program) + bool(quiet_operands(program)) + len(edges(program))
