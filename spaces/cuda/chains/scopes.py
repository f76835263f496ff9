"""Scopes whose expressions are floats of a thread, with powers by the special function unit.

``exp(c * x - m)`` is two to the power ``c * log2(e) * x - log2(e) * m``: values known in an outer
scope are scaled there, and each element takes one multiply-add before its power of two.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field

from tilewright.spaces.cuda.scalar_code import ScalarCode, Value
from tilewright.spaces.cuda.wide import Wide
from tilewright.spaces.derivation.algebra import ZERO, constant, number, plus, times
from tilewright.spaces.derivation.scopes import Scope, scaled, states_of
from tilewright.spaces.language.magnitude import Magnitudes
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Read,
)

POWERS = {"exp": math.log2(math.e), "exp2": 1.0}
"""Functions that are 2 to the power of a multiple of their argument, and the factor."""

NEAR = 65536.0
"""The largest exponent, in powers of two, for which one multiply-add is accurate enough.

The multiply-add is that of the element and its reference; the latter is rounded first, by no more
than scores of its size are.
"""

Terms = list[tuple[float, Expression]]
"""A sum of multiples of expressions."""


@dataclass
class ThreadScope(Scope):
    """A scope with one value for each thread.

    ``sums`` are expressions that are known as sums of multiples; ``references`` become the C texts
    of the parts of exponents that come from states, each with the terms that the scope knows itself
    and all others.
    """

    sums: Mapping[Expression, Terms] = field(default_factory=dict)
    references: dict[str, tuple[Terms, Terms]] = field(default_factory=dict)

    def number(self, value: float) -> str:
        """Return a literal."""
        return f"{value!r}f"

    def operation(self, node: Expression, known: Callable[[Expression], Written | None]) -> str:
        """Return an operation by C operators."""

        def given(part: Expression) -> Value | None:
            found = known(part)
            return None if found is None else Value(found.text, found.binds)

        return node.fold(ScalarCode(explicit=True), given).text

    def variable(self, name: str, value: str) -> str:
        """Declare a constant with this value and return its name."""
        self.lines.append(f"const float {name} = {value};")
        return name

    def exact(self, node: Expression, magnitudes: Magnitudes) -> str:
        """Return a number or a comparison computed in 64 bits."""
        wide = Wide(magnitudes, self._whole, lambda inner: Value(self.text(inner)))
        found = wide.condition(node) if isinstance(node, Comparison) else wide.value(node)
        assert found is not None
        return found.text

    def _whole(self, node: Expression) -> str | None:
        """Return C text of an axis or an entry as an integer; None for others.

        Numbers that floats tell apart are floats elsewhere.
        """
        if not isinstance(node, AxisValue | Read):
            return None
        return self.integer(node) or f"(i64){self.text(node)}"

    def value(self, node: Expression) -> str:
        """Return C text of an expression: powers by the unit, others by their operation."""
        if isinstance(node, Call) and node.function in POWERS:
            return self._power(node.arguments[0], POWERS[node.function])
        return super().value(node)

    def scaled_terms(self, node: Expression) -> Terms:
        """Return an expression as a sum of multiples.

        Their expressions are no sums, or are known by themselves.
        """
        if node in self.sums:
            return self.sums[node]
        if not self.holds(node) or self.leaf(node) is not None or node in self.names:
            return [(1.0, node)]
        if self.integers(node) is not None or self.is_distance(node):
            return [(1.0, node)]
        match node:
            case Negation(inner):
                return _times(-1.0, self.scaled_terms(inner))
            case Binary("+", left, right):
                return self.scaled_terms(left) + self.scaled_terms(right)
            case Binary("-", left, right):
                return self.scaled_terms(left) + _times(-1.0, self.scaled_terms(right))
            case Binary("*", left, right) if (c := constant(left)) is not None:
                return _times(c, self.scaled_terms(right))
            case Binary("*", left, right) if (c := constant(right)) is not None:
                return _times(c, self.scaled_terms(left))
            case Binary("/", left, right) if (c := constant(right)) is not None and c:
                return _times(1 / c, self.scaled_terms(left))
        return [(1.0, node)]

    def is_distance(self, node: Expression) -> bool:
        """Return true if an expression is a sum or difference of whole numbers, axes or entries.

        Such a number is exact, which a sum of multiples of its parts is not.
        """
        known = self._magnitudes
        if not isinstance(node, Binary) or node.operator not in ("+", "-") or not known:
            return False
        given = all(read.name in known.program.operand for read in node.value_reads)
        return given and known.is_integer(node)

    def apart(self, terms: Terms) -> tuple[Terms, Expression]:
        """Return the terms that this scope knows by itself, and the sum of all others."""
        own = [(c, atom) for c, atom in terms if self.around is None or self.holds(atom)]
        return own, total(t for t in terms if t not in own)

    def power_of(self, function: str, exponent: str) -> str:
        """Return C text of a power, given C text of its exponent."""
        return f"tw::exp2_approx(({exponent}) * {POWERS[function]!r}f)"

    def _power(self, exponent: Expression, scale: float) -> str:
        terms = _times(scale, self.scaled_terms(exponent))
        own, rest = self.apart(terms)
        text = "" if rest == ZERO else self.text(rest)
        if own and self._reads_states(rest):
            self.references[text] = own, [term for term in terms if term not in own]
        for c, atom in own:
            known = self.text(atom)
            text = f"tw::fused({known}, {c!r}f, {text})" if text else f"{known} * {c!r}f"
        return f"tw::exp2_approx({text})"

    def _reads_states(self, rest: Expression) -> bool:
        """Return true if the scope around knows part of ``rest`` itself: such parts are states."""
        return self.around is not None and self.around.holds(rest)


@dataclass
class ExactScope(ThreadScope):
    """A scope with one value for each thread that computes exponents as the program says.

    The exponential of the best element is then 1, however far from zero that is. ``known`` are
    expressions whose C text others have used.
    """

    known: Mapping[Expression, str] = field(default_factory=dict)

    def text(self, node: Expression) -> str:
        """Return C text of a known expression, or a variable."""
        return self.known.get(node) or super().text(node)

    def _power(self, exponent: Expression, scale: float) -> str:
        return f"tw::exp2_approx({self.text(exponent)} * {scale!r}f)"


@dataclass
class RowScope(ThreadScope):
    """A scope with one value for each row of a thread.

    Variables are arrays, written by the lines of a loop over rows in which ``index`` is the row's
    place in them; ``declared`` are their names.
    """

    index: str = "r"
    declared: list[str] = field(default_factory=list)

    def variable(self, name: str, value: str) -> str:
        """Write an entry of a new array and return it."""
        self.declared.append(name)
        self.lines.append(f"{name}[{self.index}] = {value};")
        return f"{name}[{self.index}]"

    def first(self, node: Expression) -> str:
        """Return C text of the entry of the first row."""
        return self.text(node).replace(f"[{self.index}]", "[0]")


def multiplied(exponent: Expression, scope: ThreadScope) -> Expression:
    """Return the states that an exponent is a multiple of, or the exponent itself."""
    states = states_of(exponent, scope)
    return exponent if exponent == Negation(states) else states


def change(exponent: Expression, before: ThreadScope, after: ThreadScope) -> str:
    """Return C text of how far an exponent moves from ``before`` to ``after``.

    It is the multiple of a difference, which is finite where multiples are not.
    """
    states = multiplied(exponent, after)
    moved = [scope.text(states) for scope in (before, after)]
    text = f"{moved[1]} - {moved[0]}"
    return text if states == exponent else scaled(exponent, after, text)


def total(terms: Iterable[tuple[float, Expression]]) -> Expression:
    """Return the sum of the terms as an expression."""
    found = ZERO
    for c, atom in terms:
        found = plus(found, times(number(c), atom))
    return found


def _times(c: float, terms: Terms) -> Terms:
    return [(c * own, atom) for own, atom in terms]
