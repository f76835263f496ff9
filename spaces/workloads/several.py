"""Products of matrices with several outputs, such as the sum before an activation and its value.

Such a program is no ``matmul``, whose kernels write one array. Each of its outputs by itself is
one, and all these have the same sums.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import lru_cache

from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.language.program import Output, Program
from tilewright.spaces.workloads.matmul import Further, Matmul, Operand
from tilewright.spaces.workloads.product import (
    Product,
    orient,
    product_of,
    why_no_product,
    why_unread,
)
from tilewright.spaces.workloads.served import matmul_of, names_in_matmul
from tilewright.spaces.workloads.stored_weights import with_matrices
from tilewright.spaces.workloads.workload import Workload


def product_writing(
    workload: Workload, packed: bool = False, sliced: bool = False
) -> Product | str:
    """Return the oriented product that ``workload`` is, with one output or several, or why it is
    none, in words; with ``packed`` weights, and matrices that are ``sliced`` from larger ones, for
    those that read such. The first of several outputs is one that is the sum, if there is such."""
    if len(workload.outputs) == 1:
        return product_of(workload, packed, sliced)
    found = _product(with_matrices(workload.program))
    if isinstance(found, str):
        return found
    return why_unread(found.matmul, packed, sliced) or found


@lru_cache(maxsize=64)
def _product(program: Program) -> Product | str:
    found = list[Matmul]()
    for output in program.outputs:
        alone = _alone(program, output)
        made = matmul_of(alone)
        if isinstance(made, str):
            return made
        found.append(_named(made, names_in_matmul(alone)))
    first, *others = sorted(found, key=lambda each: each.epilogue is not None)
    if reason := why_no_product(first):
        return reason
    for other in others:
        if (other.factors, other.output.order) != (first.factors, first.output.order):
            return "outputs lie in different orders; needs one"
    beside = dict[str, Operand]()
    for operand in (operand for each in found for operand in each.epilogue_inputs):
        if beside.setdefault(operand.name, operand) != operand:
            return f"{operand.name} is read along different axes; needs the same for all outputs"
    further = tuple(Further(other.output, other.epilogue) for other in others)
    made = replace(first, epilogue_inputs=tuple(beside.values()), further=further)
    return replace(orient(made), program=program)


def _named(matmul: Matmul, names: Mapping[str, str]) -> Matmul:
    """Return a product whose arrays have the names of a program."""
    left, right, output = (
        replace(array, name=names[array.name]) for array in (*matmul.factors, matmul.output)
    )
    return replace(matmul, factors=(left, right), output=output)


def _alone(program: Program, output: Output) -> Program:
    """Return the program of one output: its sum, and one map at most."""
    stage = program.stage[output.name]
    stages = [stage for stage in program.stages if stage.reducer]
    if not stage.reducer:
        stages.append(replace(stage, body=inlined(program, stage.body, lambda _: True)))
    read = {each.name for stage in stages for each in stage.body.reads}
    operands = tuple(operand for operand in program.operands if operand.name in read)
    return replace(program, operands=operands, stages=tuple(stages), outputs=(output,))
