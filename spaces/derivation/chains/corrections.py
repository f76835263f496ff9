"""Corrections of a reduction whose summand reads results that are not final yet.

To compute dependent reductions of one row in one pass, a later one starts from results ``r`` of
what has been seen so far, and is corrected when they become ``r'``. A correction H exists if

    f(x, r') = H[r -> r'](f(x, r))   and   H(a (+) b) = H(a) (+) H(b)

so H is an endomorphism of the reducer (+): of ``sum`` the linear maps, of ``max`` and ``min`` the
shifts and the positive scales. Then

    merge(A, B):  r = rA (+) rB,  t = H[rA -> r](tA) (+) H[rB -> r](tB)

is associative, and one derivation serves the next tile of a loop (B is the tile), the lanes of a
vector, warps, the blocks of a cluster and the parts of a row that is divided.

How H is found, with the summand separated into what is of the row and what is of the element
(:mod:`spaces.derivation.chains.separation`):

- a factor of the row without exponentials leaves the sum and multiplies the final state;
- a factor ``exp(u(r))`` stays, for the sake of range, and H multiplies by ``exp(u(r') - u(r))``;
- a polynomial of a result has a finite Taylor series about it, see
  :mod:`spaces.derivation.chains.taylor`;
- of ``max`` and ``min``, a term of the row leaves the reduction, and so does a positive factor.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field, replace

from tilewright.spaces.derivation.algebra import ONE, ZERO, constant, plus, times
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, state
from tilewright.spaces.derivation.chains.separation import (
    Separation,
    Term,
    UnderivableError,
    element,
)
from tilewright.spaces.derivation.chains.taylor import about_result
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.tree import Binary, Call, Expression, Number


@dataclass
class Derivation:
    """Derives the reductions of one pass, one after the other, from their summands.

    ``over`` are the axes that the pass runs along, ``count`` the number of elements of every row,
    None if conditions leave some out. ``found`` has the reductions so far by name, and
    grows by those that only corrections need, such as a count.

    Two corrections are less right than what is written, for some inputs: a factor that leaves a sum
    which overflows without it, and moments about a mean that is large beside the spread. A
    ``strict`` derivation has neither; moments of shifted elements
    (:mod:`spaces.derivation.chains.shifting`) are right.
    """

    over: frozenset[str]
    count: int | None = None
    strict: bool = False
    found: dict[str, ChainReduction] = field(default_factory=dict)

    def varies(self, f: Expression) -> bool:
        """Tell whether ``f`` differs from element to element of a row."""
        return not f.axes.isdisjoint(self.over)

    def depends(self, f: Expression) -> bool:
        """Tell whether ``f`` reads states of this pass."""
        return any(read.name in self.found for read in f.reads)

    def derive(self, name: str, reducer: str, axes: tuple[str, ...], summand: Expression) -> None:
        """Add a reduction; :class:`UnderivableError` says why it cannot be of this pass."""
        own = ChainReduction(name, reducer, axes, summand, None, state(name, axes))
        if not self.depends(summand):
            self.found[name] = own
            return
        terms = Separation(self.varies, self.depends).terms(summand)
        if reducer == "prod":
            raise UnderivableError("a prod of terms that read results has no known correction")
        self.found[name] = self._sum(own, terms) if reducer == "sum" else _extreme(self, own, terms)

    def _sum(self, own: ChainReduction, terms: Sequence[Term]) -> ChainReduction:
        groups = {(t.function, t.u, t.q) for t in terms} or {(None, ZERO, ONE)}
        if len(groups) == 1:
            function, u, q = groups.pop()
            correction = None if function is None or u == ZERO else Scaling(function, u)
            self._check_leaving(own, q, scaled=correction is not None)
            # A factor that stays is as the program has it: of a difference it is not of both sides.
            total = own.element if q == ONE else _total(map(element, terms))
            return replace(own, element=total, correction=correction, result=times(own.state, q))
        if any(t.function for t in terms):
            raise UnderivableError(
                f"{own.element} has {len(groups)} terms with different corrections"
            )
        return about_result(self, own)

    def _check_leaving(self, own: ChainReduction, q: Expression, scaled: bool) -> None:
        """Refuse a factor ``q`` without which the sum may overflow: of elements that are ``scaled``
        to one at most, the reciprocal of what they add up to is none."""
        normalises = scaled and isinstance(q, Binary) and q.operator == "/"
        if self.strict and constant(q) is None and not normalises:
            raise UnderivableError(f"{own.element} may overflow without its factor {q}")


def _extreme(derivation: Derivation, own: ChainReduction, terms: Sequence[Term]) -> ChainReduction:
    """Correct ``max``, ``min`` and their arguments for shifts and positive scales of all
    elements.
    """
    rest = [t for t in terms if derivation.varies(t.c)]
    shifts = [t for t in terms if not derivation.varies(t.c)]
    scales = {t.q for t in rest} or {ONE}
    if len(scales) > 1 or any(t.function for t in terms) or not positive(*scales):
        raise UnderivableError(
            f"a {own.reducer} of {own.element} is corrected by shifts and positive factors, "
            "and this has neither"
        )
    total = _total(element(t) for t in rest)
    result: Expression = own.state
    if not REDUCERS[own.reducer].argument:
        shift = _total(times(element(t), t.q) for t in shifts)
        result = plus(times(own.state, scales.pop()), shift)
    return replace(own, element=total, result=result)


def _total(values: Iterable[Expression]) -> Expression:
    result: Expression = ZERO
    for value in values:
        result = plus(result, value)
    return result


def positive(f: Expression) -> bool:
    """Tell whether ``f`` is provably positive, or 0 only by underflow."""
    match f:
        case Number(value):
            return value > 0
        case Call("exp" | "exp2" | "sigmoid" | "sqrt" | "rsqrt"):
            return True
        case Binary("*" | "/" | "+", left, right):
            return positive(left) and positive(right)
    return False
