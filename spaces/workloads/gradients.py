"""Gradients of operators as people ask for them: of a workload, a program or text."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.derivation.gradients import gradient as derivation
from tilewright.spaces.derivation.gradients import saving as savings
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.program import Program
from tilewright.spaces.operators import as_workload
from tilewright.spaces.staged.division import ON_CPU, Costs
from tilewright.spaces.workloads.gradient_plans import GradientPlan, PlannedGradient
from tilewright.spaces.workloads.workload import Workload

Names = Sequence[str] | str
"""Names of arrays, as a sequence or as text with commas between them."""


def gradient(
    of: Workload | Program | str,
    wrt: Names,
    saved: Names = (),
    outputs: Names | None = None,
    solved: Names = (),
) -> Program:
    """Return the program of the gradient of an operator by the operands ``wrt``.

    Its outputs are the derivatives ``dx`` of each operand ``x`` in the order of ``wrt``. Its
    operands are those that it needs: operands of the program, the derivative ``dy`` of each output
    ``y``, and the stages ``saved``, which are not computed again; :func:`saving` writes them.
    ``lse`` among these is the logarithm of the sum of exponentials of a softmax. ``outputs`` names
    the outputs whose derivatives are given; by default all of floating point. Operands ``solved``
    for are not read: a norm's ``x`` follows from its output and its statistics, where no weight is
    0. With a weight of 0 the gradient is no number.

        gradient("softmax r=4096 c=1024", "x", saved="y")
        gradient("layernorm r=4096 c=1024", "x,weight,bias", saved="y,rstd", solved="x")

    Raises :class:`InputError` for operands and stages that are not there, for those of whole
    numbers, for functions without a gradient, for operands that cannot be solved for, and for what
    is too large for a program.
    """
    program = _program(of)
    some = None if outputs is None else _names(outputs)
    return derivation.gradient(program, _names(wrt), _names(saved), some, _names(solved))


def saving(of: Workload | Program | str, saved: Names) -> Program:
    """Return the program of an operator that also writes the stages that its gradient reads.

    They are further outputs, in float32. :class:`InputError` for a stage that is not there.
    """
    return savings.forward(_program(of), _names(saved))


def gradient_plans(
    of: Workload | Program | str,
    wrt: Names,
    outputs: Names | None = None,
    solved: Names = (),
    held: Names = (),
    costs: Costs = ON_CPU,
) -> list[GradientPlan]:
    """Return what may be saved for the gradient of an operator, from the fewest bytes kept to the
    most and from the highest cost predicted by ``costs`` to the lowest.

    Each :class:`GradientPlan` has the stages ``saved``, the programs ``forward`` and ``backward``,
    and the ``bytes`` that pass between them, without those of arrays that are ``held`` anyway, such
    as parameters. Operands ``solved`` for may be read or not. Other arguments and errors are those
    of :func:`gradient`.

        gradient_plans("attention b=1 h=2 i=512 j=512 d=64", "q,k,v")
    """
    some = None if outputs is None else _names(outputs)
    anyway = frozenset(_names(held))
    return PlannedGradient(_program(of), _names(wrt), some, (*_names(solved),), anyway).plans(costs)


def differentiable(of: Workload | Program) -> list[str]:
    """Return the operands that an operator has a gradient by; :class:`InputError` with the reason
    if there is none."""
    program, found = _program(of), []
    reason: InputError | None = None
    for operand in program.operands:
        try:
            derivation.gradient(program, [operand.name])
            found.append(operand.name)
        except InputError as problem:
            reason = reason or problem
    if not found:
        raise reason or InputError("the program has no operand to differentiate by")
    return found


def _program(given: Workload | Program | str) -> Program:
    return given if isinstance(given, Program) else as_workload(given).written


def _names(given: Names) -> list[str]:
    parts = given.split(",") if isinstance(given, str) else given
    return [part.strip() if isinstance(part, str) else part for part in parts if part != ""]
