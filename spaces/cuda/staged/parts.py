"""The kernels that compute a program on a GPU in sequence."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.cuda.blocks.template import BlockTemplate
from tilewright.spaces.cuda.chained.template import CudaChained
from tilewright.spaces.cuda.chained_deep.template import ChainedDeep
from tilewright.spaces.cuda.hopper.template import Hopper
from tilewright.spaces.cuda.hopper_pairs.template import HopperPairs
from tilewright.spaces.cuda.hopper_reduced.template import HopperReduced
from tilewright.spaces.cuda.loops.template import CudaLoops
from tilewright.spaces.cuda.rows.template import CudaRows
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.cuda.thin.template import CudaThin
from tilewright.spaces.cuda.windows.template import CudaWindows
from tilewright.spaces.derivation.rows.served import why_product
from tilewright.spaces.language.program import Program
from tilewright.spaces.staged.division import ON_GPU, cheaper, divided
from tilewright.spaces.staged.partition import (
    Part,
    Serving,
    first_of,
    partition,
    phased,
    simplified,
)
from tilewright.spaces.staged.template import Staged
from tilewright.spaces.template import Template
from tilewright.spaces.workloads.workload import Workload


@lru_cache(maxsize=64)
def parts(program: Program, target: CudaTarget) -> tuple[Part, ...] | str:
    """Return the parts of a program; or why there are none, in words.

    There is only one if one kernel computes it at once, leaves no tensor core idle and adds up
    nothing over all rows beside them.
    """
    return partition(program, _serving(target), narrow=True, spare=CudaLoops)


@lru_cache(maxsize=64)
def divided_parts(program: Program, target: CudaTarget) -> tuple[Part, ...] | str:
    """Return the parts of the cheapest division; or why there are none, in words."""
    first = parts(program, target)
    if not isinstance(first, str) and len(first) == 1:
        return first
    return cheaper(first, divided(program, _serving(target), CudaLoops, ON_GPU), ON_GPU)


@lru_cache(maxsize=64)
def parts_of_phases(program: Program, target: CudaTarget) -> tuple[Part, ...] | str:
    """Return the phases of a sum with a stride; or why there are none, in words."""
    return phased(program, _serving(target), CudaLoops)


@lru_cache(maxsize=64)
def parts_with_loops(program: Program, target: CudaTarget) -> tuple[Part, ...] | str:
    """Return the parts, of which one has a plain kernel of loops; or why there are none."""
    return simplified(program, _serving(target), CudaLoops, narrow=True)


def _serving(target: CudaTarget) -> Serving:
    """Return a function that returns the template of a part.

    Rows multiply no matrices here, products of few rows have the template that is for them, and
    pairs of products are in one kernel anyway. So are chains of deep products, and rows with sums
    over all of them, but several kernels may be faster: they multiply, or add, as such alone do.
    Parts with several outputs have the templates that they had in the first version of this one.
    """
    from tilewright.spaces.cuda.templates import TEMPLATES  # late: one of them imports this

    alone = (HopperPairs, HopperReduced, ChainedDeep, Staged)
    kernels = [t for t in TEMPLATES.values() if not issubclass(t, alone) and not t.last_resort]
    others: list[type[Template]] = [CudaThin, *kernels]
    first = first_of(others, target)
    without_rows = first_of([t for t in others if t is not CudaRows], target)
    tiled = (BlockTemplate, CudaRows, CudaThin, CudaWindows, Hopper)
    of_several = first_of([t for t in others if not issubclass(t, tiled)], target)

    def serving(workload: Workload) -> type[Template] | str:
        multiplies = not workload.matmul and why_product(workload.program)
        if multiplies and len(workload.outputs) > 1:
            return of_several(workload)
        found = (without_rows if multiplies else first)(workload)
        idle = found is CudaChained and CudaChained.leaves_idle(workload, target)
        apart = found is CudaRows and CudaRows.sums_over_rows(workload)
        return idle or apart or found

    return serving
