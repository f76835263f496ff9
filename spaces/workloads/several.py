"""Products of matrices with several outputs, such as the sum before an activation and its value.

Such a program is no ``matmul``, whose kernels write one array. Each of its outputs by itself is
one, and all these have the same sums.
"""

from __future__ import annotations

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

FACTORS = ("A", "B")
"""The names of the factors of a ``matmul``."""


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
    found = list[tuple[str, Matmul, dict[str, str]]]()
    for output in program.outputs:
        alone = _alone(program, output)
        made = matmul_of(alone)
        if isinstance(made, str):
            return made
        found.append((output.name, made, dict(names_in_matmul(alone))))
    found.sort(key=lambda each: each[1].epilogue is not None)
    (name, first, names), *others = found
    if clash := next((own for own, *_ in others if own in FACTORS), None):
        return f"{clash} is written; allowed: other names than {' and '.join(FACTORS)}"
    if reason := why_no_product(first):
        return reason
    for _, other, own in others:
        if (other.factors, other.output.order) != (first.factors, first.output.order) or any(
            own[factor] != names[factor] for factor in FACTORS
        ):
            return "outputs lie in different orders; needs one"
    beside = dict[str, Operand]()
    for operand in (o for _, each, _ in found for o in each.epilogue_inputs):
        if beside.setdefault(operand.name, operand) != operand:
            return f"{operand.name} is read along different axes; needs the same for all outputs"
    made = replace(
        first,
        output=replace(first.output, name=name),
        epilogue_inputs=tuple(beside.values()),
        further=tuple(
            Further(replace(other.output, name=own), other.epilogue) for own, other, _ in others
        ),
    )
    places = [array.name for array in (*program.operands, *program.outputs)]
    product = orient(made)
    factors = {factor: names[factor] for factor in FACTORS}
    buffers = (places.index(factors.get(array.name, array.name)) for array in product.numbered)
    return replace(product, buffers=tuple(buffers))


def _alone(program: Program, output: Output) -> Program:
    """Return the program of one output: its sum, and one map at most."""
    stage = program.stage[output.name]
    stages = [stage for stage in program.stages if stage.reducer]
    if not stage.reducer:
        stages.append(replace(stage, body=inlined(program, stage.body, lambda _: True)))
    read = {each.name for stage in stages for each in stage.body.reads}
    operands = tuple(operand for operand in program.operands if operand.name in read)
    return replace(program, operands=operands, stages=tuple(stages), outputs=(output,))
