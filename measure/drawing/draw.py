"""Fresh random problems of a workload: inputs that tell right kernels from wrong ones, and what
right ones make of them.

    fresh = fresh_inputs(workload, seed)
    draw = fresh.draw(1)
    draw.inputs["x"], draw.allowed()["y"]  # an array; the least and the greatest values
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache

from tilewright.measure.drawing.interfaces import Draw, FreshInputs
from tilewright.spaces.workloads.workload import Workload


def fresh_inputs(
    workload: Workload, seed: int, pause: Callable[[], None] = lambda: None
) -> FreshInputs:
    """Random problems of ``workload``; :class:`InputError` if none would be sensitive.

    ``pause`` is called now and then in the work on them, and may raise to end it.
    """
    if workload.matmul:
        from tilewright.measure.drawing.products import ProductInputs

        return ProductInputs(workload, seed, pause)
    from tilewright.measure.drawing.programs import ProgramInputs

    return ProgramInputs(workload, seed, pause)


def are_for(fresh: FreshInputs | Draw | None, workload: Workload) -> bool:
    """Tell whether inputs belong to a workload, names included: equal workloads may have other
    names.
    """
    if fresh is None or fresh.workload != workload:
        return False
    return tuple(fresh.workload.operands) == tuple(workload.operands)


def one_draw(workload: Workload, seed: int) -> Draw:
    """Return one problem; the same one for the same seed."""
    if workload.matmul:
        from tilewright.measure.drawing.products import product_draw

        return product_draw(workload, seed)
    return fresh_inputs(workload, seed).draw(seed, final=True)


@lru_cache(maxsize=64)
def check_sensitivity(workload: Workload) -> None:
    """Raise :class:`InputError` if no inputs of ``workload`` are sensitive."""
    if workload.matmul:
        from tilewright.measure.drawing import product_sensitivity

        product_sensitivity.sensitivity(workload.matmul)
    else:
        from tilewright.measure.drawing import program_sensitivity

        program_sensitivity.sensitivity(workload.program)
