"""Scopes whose expressions are floats of a thread, powers as the special function unit has them.

``exp(c * x - m)`` is two to the power ``c * log2(e) * x - log2(e) * m``: what is known further out
is scaled there, and each element takes one multiply-add before its power of two.
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
"""Functions that are powers of two of so many times their argument."""

NEAR = 65536.0
"""Up to which magnitude, in powers of two, an exponent is one multiply-add of its element and what
that is measured from: the latter is rounded first, by no more than scores of its size are."""

Terms = list[tuple[float, Expression]]
"""A sum of multiples of expressions."""


@dataclass
class ThreadScope(Scope):
    """One value a thread. ``sums`` are expressions that are known as sums of multiples;
    ``references`` become the C texts of what exponents have of states, with the terms that they
    know by themselves and all others."""

    sums: Mapping[Expression, Terms] = field(default_factory=dict)
    references: dict[str, tuple[Terms, Terms]] = field(default_factory=dict)

    def number(self, value: float) -> str:
        """A literal."""
        return f"{value!r}f"

    def operation(self, node: Expression, known: Callable[[Expression], Written | None]) -> str:
        """By the operators of C."""

        def given(part: Expression) -> Value | None:
            found = known(part)
            return None if found is None else Value(found.text, found.binds)

        return node.fold(ScalarCode(explicit=True), given).text

    def variable(self, name: str, value: str) -> str:
        """A constant."""
        self.lines.append(f"const float {name} = {value};")
        return name

    def exact(self, node: Expression, magnitudes: Magnitudes) -> str:
        """In 64 bits."""
        wide = Wide(magnitudes, self._whole, lambda inner: Value(self.text(inner)))
        found = wide.condition(node) if isinstance(node, Comparison) else wide.value(node)
        assert found is not None
        return found.text

    def _whole(self, node: Expression) -> str | None:
        """An axis or an entry; those that floats tell apart are floats elsewhere."""
        if not isinstance(node, AxisValue | Read):
            return None
        return self.integer(node) or f"(i64){self.text(node)}"

    def value(self, node: Expression) -> str:
        """Powers by the unit, anything else by the operation."""
        if isinstance(node, Call) and node.function in POWERS:
            return self._power(node.arguments[0], POWERS[node.function])
        return super().value(node)

    def scaled_terms(self, node: Expression) -> Terms:
        """The expression as a sum of multiples of what is no sum, or is known by itself."""
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
        """Tell whether an expression is a sum or difference of whole numbers, axes or entries. Such
        a one is exact where a sum of their multiples is not."""
        known = self._magnitudes
        if not isinstance(node, Binary) or node.operator not in ("+", "-") or not known:
            return False
        given = all(read.name in known.program.operand for read in node.value_reads)
        return given and known.is_integer(node)

    def apart(self, terms: Terms) -> tuple[Terms, Expression]:
        """The terms that this scope knows by itself, and the sum of all others."""
        own = [(c, atom) for c, atom in terms if self.around is None or self.holds(atom)]
        return own, total(t for t in terms if t not in own)

    def power_of(self, function: str, exponent: str) -> str:
        """A power of a C text."""
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
        """Whether the scope around knows some of it by itself, which is states."""
        return self.around is not None and self.around.holds(rest)


@dataclass
class ExactScope(ThreadScope):
    """One value a thread, as the program says it: the exponential of the best element is one,
    however far from zero that is. ``known`` are expressions whose C text others have used."""

    known: Mapping[Expression, str] = field(default_factory=dict)

    def text(self, node: Expression) -> str:
        """Those, or a variable."""
        return self.known.get(node) or super().text(node)

    def _power(self, exponent: Expression, scale: float) -> str:
        return f"tw::exp2_approx({self.text(exponent)} * {scale!r}f)"


@dataclass
class RowScope(ThreadScope):
    """One value for each row of a thread: variables are arrays, written by the lines of a loop over
    rows in which ``index`` is the row's place in them; ``declared`` are their names."""

    index: str = "r"
    declared: list[str] = field(default_factory=list)

    def variable(self, name: str, value: str) -> str:
        """An entry of an array."""
        self.declared.append(name)
        self.lines.append(f"{name}[{self.index}] = {value};")
        return f"{name}[{self.index}]"

    def first(self, node: Expression) -> str:
        """The C text of the entry of the first row."""
        return self.text(node).replace(f"[{self.index}]", "[0]")


def multiplied(exponent: Expression, scope: ThreadScope) -> Expression:
    """The states that an exponent is a multiple of, or the exponent."""
    states = states_of(exponent, scope)
    return exponent if exponent == Negation(states) else states


def change(exponent: Expression, before: ThreadScope, after: ThreadScope) -> str:
    """C text of how far an exponent moves from ``before`` to ``after``: the multiple of a
    difference, which is finite where multiples are not."""
    states = multiplied(exponent, after)
    moved = [scope.text(states) for scope in (before, after)]
    text = f"{moved[1]} - {moved[0]}"
    return text if states == exponent else scaled(exponent, after, text)


def total(terms: Iterable[tuple[float, Expression]]) -> Expression:
    """The sum."""
    found = ZERO
    for c, atom in terms:
        found = plus(found, times(number(c), atom))
    return found


def _times(c: float, terms: Terms) -> Terms:
    return [(c * own, atom) for own, atom in terms]
