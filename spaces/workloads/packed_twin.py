"""The same product with a weight of it packed: what a weight that stays is better read as."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import Expression, Read
from tilewright.spaces.workloads.served import workload_of
from tilewright.spaces.workloads.workload import Workload


def packed_twin(workload: Workload, name: str) -> tuple[Workload, bool] | None:
    """Return the product of ``workload``, which was written as a program, with its operand ``name``
    packed. Tell whether the matrix to be packed is the operand's transpose. None if there is no
    such product.
    """
    program = workload.asked
    if program is None or len(program.operand[name].shape) != 2:
        return None
    for turned in (False, True):
        with suppress(InputError):
            return workload_of(_packed(program, name, turned)), turned
    return None


def _packed(program: Program, name: str, turned: bool) -> Program:
    """Return the program with one operand packed, its dimensions ``turned`` or not."""
    order = (1, 0) if turned else (0, 1)
    operand = program.operand[name]
    shape = tuple(operand.shape[place] for place in order)
    plain = replace(operand, shape=shape, order=(0, 1), leading=None, packed=True)

    def read(node: Expression) -> Expression:
        node = node.with_children(tuple(map(read, node.children)))
        if isinstance(node, Read) and node.name == name:
            return replace(node, indices=tuple(node.indices[place] for place in order))
        return node

    def stage(old: Stage) -> Stage:
        return replace(old, body=read(old.body))

    operands = tuple(plain if each is operand else each for each in program.operands)
    return replace(program, operands=operands, stages=tuple(map(stage, program.stages)))
