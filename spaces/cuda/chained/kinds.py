"""The dtypes in which a chained kernel multiplies: those of scores, and of weights by matrices.

Products of 16-bit arrays are multiplied in their dtype. Where all arrays are float8, a product of
two of them is one of float8, and so may be one of weights that are at most one: these are rounded
to the dtype of the matrices, raised into its range
(:data:`~spaces.derivation.rounding.reductions.RAISED`). Two different dtypes of float8, values that
are computed, and weights without a bound are multiplied in bfloat16, which holds them.

Factors that a program means in float32 are not rounded: an array of more bits, or a computed factor
of a product without an array of as few bits.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.chains.separation import EXPONENTIALS
from tilewright.spaces.derivation.rounding.reductions import dtypes_of_factors
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import Binary, Call, Expression, Read

HALVES = ("float16", "bfloat16")
FLOAT8 = ("float8_e4m3fn", "float8_e5m2")


@dataclass(frozen=True)
class Kinds:
    """The dtype of ``scores``' factors, and those that ``weights`` may be multiplied in."""

    scores: str
    weights: tuple[str, ...]


def kinds_of(chained: Chained) -> Kinds | None:
    """Return the dtypes; None if there are none, or several of 16 bits."""
    factors = [chained.left, chained.right, *(w.matrix for w in chained.weighings)]
    names = {read.name for factor in factors for read in factor.reads}
    operand = chained.program.operand
    found = {operand[name].dtype for name in names if name in operand} & set(HALVES)
    if found:
        kind = found.pop()
        return None if found else Kinds(kind, (kind,))
    left, right, *matrices = (_dtype(chained.program, factor) for factor in factors)
    given = {left, right, *matrices} - {None}
    if not given <= set(FLOAT8) or left is None or right is None:
        return None
    short = matrices[0] if len(set(matrices)) == 1 else None
    bounded = all(_is_bounded(chained, weighing.weight) for weighing in chained.weighings)
    weights = (short,) if short and bounded else ()
    return Kinds(left if left == right else HALVES[1], (*weights, HALVES[1]))


def rounded_too_far(chained: Chained, kinds: Kinds) -> tuple[Expression, str] | None:
    """Return a factor that must not be rounded as kernels would, and the dtype they round it to.

    Verification does not allow it. None if there is no such factor.
    """
    products = [(chained.score.name, (chained.left, chained.right), kinds.scores)]
    products += [
        (w.reduction.name, (w.matrix, w.weight), kinds.weights[-1]) for w in chained.weighings
    ]
    return rounded_further(chained.program, products)


def rounded_further(
    program: Program, products: Iterable[tuple[str, tuple[Expression, ...], str]]
) -> tuple[Expression, str] | None:
    """Return the same of ``products``: the stage of each, its factors, and the dtype that they are
    rounded to."""
    for name, sides, kind in products:
        beside = dtypes_of_factors(program, program.stage[name])
        allowed = not {kind, *FLOAT8}.isdisjoint(beside)
        for side in sides:
            array = _dtype(program, side)
            if not _is_exact(side, array, kind) and (array or not allowed):
                return side, kind
    return None


def _is_exact(factor: Expression, array: str | None, kind: str) -> bool:
    """Return true if ``kind`` holds a factor, an array of the dtype ``array`` or a computed one."""
    if array:
        return array == kind or dtype(array).bytes == 1
    return isinstance(factor, Call) and factor.function == kind


def _dtype(program: Program, factor: Expression) -> str | None:
    """Return the dtype of an array; None of a computed factor."""
    given = program.operand.get(factor.name) if isinstance(factor, Read) else None
    return given.dtype if given else None


def _is_bounded(chained: Chained, weight: Expression) -> bool:
    """Return true if a weight is at most one.

    It is then the exponential of a number less the maximum of all such numbers.
    """
    if not (isinstance(weight, Call) and weight.function in EXPONENTIALS):
        return False
    (power,) = weight.arguments
    tops = [(r.element, r.state) for r in chained.scalars if r.reducer == "max"]
    return isinstance(power, Binary) and power.operator == "-" and (power.left, power.right) in tops
