"""Expressions as text in C, each computed in the outermost loop where its inputs are known.

A scope is a part of the code in which some expressions have one value: a row, a tile of a row, or
one vector of a tile. Expressions that are known further out are left to the surrounding scope.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Protocol

from tilewright.spaces.derivation.algebra import ONE
from tilewright.spaces.derivation.chains.chain_reduction import Series
from tilewright.spaces.derivation.work import PLAIN
from tilewright.spaces.language.magnitude import Magnitudes
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import (
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
)

Leaf = Callable[[Expression], str | None]
"""The C text of a read or an axis' value, as far as a scope knows it by itself."""


@dataclass(frozen=True)
class Integer(Expression):
    """A request to a leaf: ``node``, an axis or an entry, is wanted as an integer, not as a
    float.
    """

    node: Expression

    @property
    def children(self) -> tuple[Expression, ...]:
        """The node."""
        return (self.node,)


@dataclass
class Scope(ABC):
    """Adds C variables for expressions to ``lines``.

    ``leaf`` gives the text of what the scope can read, None of what the scope around can; it may
    also give the text of whole expressions that are known already. Variables are called ``prefix``
    and a number, and each expression has one. Whole numbers are floats as long as these tell them
    apart: then a rounded quotient is never the next whole number. Where they do not, by the
    ``magnitudes`` of the program, which the outermost scope has, operations are of integers.
    """

    prefix: str
    leaf: Leaf
    lines: list[str] = field(default_factory=list)
    around: Scope | None = None
    names: dict[Expression, str] = field(default_factory=dict)
    own: dict[Expression, bool] = field(default_factory=dict)
    magnitudes: Magnitudes | None = None

    # -- the language that is written -------------------------------------------------------------

    @abstractmethod
    def number(self, value: float) -> str:
        """Return a constant."""

    @abstractmethod
    def operation(self, node: Expression, known: Callable[[Expression], Written | None]) -> str:
        """Return an operation, whose parts ``known`` gives."""

    @abstractmethod
    def variable(self, name: str, value: str) -> str:
        """Declare a variable in :attr:`lines`, and say how it is read."""

    @abstractmethod
    def exact(self, node: Expression, magnitudes: Magnitudes) -> str:
        """Return an operation of integers, as a float, or a comparison of them."""

    # -- integers ---------------------------------------------------------------------------------

    def integers(self, node: Expression) -> str | None:
        """Return an operation that takes integers, or a comparison that does; None of others."""
        known = self._magnitudes
        return self.exact(node, known) if known and known.takes_integers(node) else None

    def integer(self, node: Expression) -> str | None:
        """Ask the leaves, from this scope outwards, for an axis or an entry as an integer."""
        found = self.leaf(Integer(node))
        return found if found or not self.around else self.around.integer(node)

    @property
    def _magnitudes(self) -> Magnitudes | None:
        if self.magnitudes or not self.around:
            return self.magnitudes
        return self.around._magnitudes

    # -- expressions ------------------------------------------------------------------------------

    def text(self, node: Expression) -> str:
        """Return a C expression of ``node``: a constant, or a variable."""
        if isinstance(node, Number):
            return self.number(node.value)
        if self.around and not self.holds(node):
            return self.around.text(node)
        if node not in self.names:
            value = self.leaf(node) or self.value(node)
            self.names[node] = self.variable(f"{self.prefix}{len(self.names)}", value)
        return self.names[node]

    def holds(self, node: Expression) -> bool:
        """Tell whether an expression reads anything that this scope defines itself."""
        if node not in self.own:
            below = () if isinstance(node, Read) else node.children
            self.own[node] = self.leaf(node) is not None or any(map(self.holds, below))
        return self.own[node]

    def condition(self, node: Comparison) -> str:
        """Return a comparison."""
        if (exact := self.integers(node)) is not None:
            return exact
        return f"{self.text(node.left)} {node.operator} {self.text(node.right)}"

    def value(self, node: Expression) -> str:
        """Return the operation of a node on the texts of its parts."""
        if (exact := self.integers(node)) is not None:
            return exact
        match node:
            case Binary("//", left, right):
                return f"tw_floor({self.text(left)} / {self.text(right)})"
            case Binary("%", left, right):
                whole = self.text(Binary("//", left, right))
                return f"{self.text(left)} - {self.text(right)} * {whole}"
            case Binary("/", left, right) if self._multiplies(left, right):
                node = Binary("*", left, Binary("/", ONE, right))

        def known(part: Expression) -> Written | None:
            if isinstance(part, Comparison) and (exact := self.integers(part)) is not None:
                return Written(exact)
            is_written_here = part is node or isinstance(part, Comparison)
            return None if is_written_here else Written(self.text(part))

        return self.operation(node, known)

    def _multiplies(self, left: Expression, right: Expression) -> bool:
        """Tell whether to replace a quotient by a product with a reciprocal that an outer scope
        knows. A dividend with a function's error may be rounded once more.
        """
        return bool(self.around) and not self.holds(right) and self.holds(left) and special(left)


def series(correction: Series, old: Scope, new: Scope) -> list[str]:
    """C texts of what a state is corrected by where results moved from ``old`` to ``new``."""
    distance = f"({new.text(correction.about)} - {old.text(correction.about)})"
    return [" * ".join([*[distance] * power, old.text(total)]) for power, total in correction.terms]


class Known(Protocol):
    """Tells which expressions read states, and gives the C text of any."""

    def holds(self, node: Expression) -> bool:
        """Tell whether an expression reads states."""

    def text(self, node: Expression) -> str:
        """Give its C text."""


def states_of(exponent: Expression, scope: Known) -> Expression:
    """Return an exponent without the factors that no state of ``scope`` is in."""
    match exponent:
        case Negation(inner):
            return states_of(inner, scope)
        case Binary("*" | "/", left, right) if not scope.holds(right):
            return states_of(left, scope)
        case Binary("*", left, right) if not scope.holds(left):
            return states_of(right, scope)
    return exponent


def scaled(exponent: Expression, scope: Known, moved: str) -> str:
    """Return how far an exponent moves whose :func:`states_of` ``moved`` so far: their difference
    is exact and finite where that of large exponents is neither."""
    match exponent:
        case Negation(inner):
            return f"-{scaled(inner, scope, moved)}"
        case Binary("*" | "/" as operator, left, right) if not scope.holds(right):
            return f"{scaled(left, scope, moved)} {operator} {scope.text(right)}"
        case Binary("*", left, right) if not scope.holds(left):
            return f"{scaled(right, scope, moved)} * {scope.text(left)}"
    return f"({moved})"


def special(expression: Expression) -> bool:
    """Tell whether an expression calls a function that takes several instructions."""
    return any(isinstance(n, Call) and n.function not in PLAIN for n in expression.walk())


def combined(values: Sequence[str], join: Callable[[str, str], str]) -> str:
    """Join all values in pairs, as a tree as flat as possible."""
    values = list(values)
    while len(values) > 1:
        pairs = [join(*values[i : i + 2]) for i in range(0, len(values) - 1, 2)]
        values = pairs + values[len(values) - len(values) % 2 :]
    return values[0]
