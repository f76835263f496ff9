"""Derive how to correct a reduction whose summand reads results that are not final yet.

Dependent reductions of one row can share one pass over it. The later reduction then reads partial
results ``r`` of the earlier ones. It is corrected when these become ``r'``. A correction H exists
if

    f(x, r') = H[r -> r'](f(x, r))   and   H(a (+) b) = H(a) (+) H(b)

so H is an endomorphism of the reducer (+). The endomorphisms of ``sum`` are the linear maps, those
of ``max`` and ``min`` are shifts and positive scales. Then

    merge(A, B):  r = rA (+) rB,  t = H[rA -> r](tA) (+) H[rB -> r](tB)

is associative. One derivation therefore serves all merges: with a loop's next tile (B is the tile),
of vector lanes, of warps, of the blocks of a cluster, and of the parts of a divided row.

H is found from the summand. Its factors and terms are separated into those that are constant along
the row and those that vary from element to element (:mod:`spaces.derivation.chains.separation`):

- A constant factor without exponentials is taken out of the sum and multiplies the final state.
- A constant factor ``exp(u(r))`` stays in the sum, which would overflow without it. H multiplies by
  ``exp(u(r') - u(r))``.
- A polynomial of a result is expanded into a finite Taylor series about that result, see
  :mod:`spaces.derivation.chains.taylor`.
- Constant terms and positive constant factors are taken out of ``max`` and ``min``.
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

    ``over`` names the axes that the pass runs along. ``count`` is the number of elements in each
    row, None if conditions exclude some. ``found`` maps names to the reductions so far. It also
    receives those that only corrections need, such as a count.

    Two corrections are less accurate than the program for some inputs. A sum may overflow once a
    factor is taken out of it, and moments about a mean lose digits if the mean is much larger than
    the spread. A ``strict`` derivation refuses both. It uses moments of shifted elements, which
    are accurate (:mod:`spaces.derivation.chains.shifting`).
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
        """Add a reduction to the pass; :class:`UnderivableError` says why it cannot join."""
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
            # A factor that stays multiplies a whole difference, as written, and not both sides.
            total = _difference_first(own.element) if q == ONE else _total(map(element, terms))
            return replace(own, element=total, correction=correction, result=times(own.state, q))
        if any(t.function for t in terms):
            raise UnderivableError(
                f"{own.element} has {len(groups)} terms with different corrections"
            )
        return about_result(self, own)

    def _check_leaving(self, own: ChainReduction, q: Expression, scaled: bool) -> None:
        """Refuse to take a factor ``q`` out of a sum that may overflow without it. The division of
        elements that are ``scaled`` to at most one may be left to the end."""
        normalises = scaled and isinstance(q, Binary) and q.operator == "/"
        if self.strict and constant(q) is None and not normalises:
            raise UnderivableError(f"{own.element} may overflow without its factor {q}")


def _difference_first(f: Expression) -> Expression:
    """Return the same with exponents ``c * x - c * m`` as ``(x - m) * c``: where an ``m`` of what
    has been seen so far is large, both products may overflow, and no element is as far from it."""
    match f:
        case Call("exp" | "exp2", (Binary("-", left, right),)):
            (x, by), (m, same) = _multiple(left), _multiple(right)
            if by == same != 1:
                return Call(f.function, (Binary("*", Binary("-", x, m), Number(by)),))
            return f
        case Binary():
            return f.with_children(tuple(map(_difference_first, f.children)))
    return f


def _multiple(f: Expression) -> tuple[Expression, float]:
    match f:
        case Binary("*", x, Number(by)) | Binary("*", Number(by), x):
            return x, by
    return f, 1.0


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
