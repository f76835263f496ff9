"""Expressions in a normal form: expressions that algebra proves equal have equal forms.

Sums, products, maxima and minima lose their grouping. Differences become sums, quotients become
products, and indices become sums of multiples. A minus that most terms of a factor have moves to
the product. Constants are folded (to 12 digits; integers to all their digits). Functions are spelt
out where others suffice: ``gelu`` in ``erf``, ``silu`` and ``sigmoid`` in ``exp``, ``relu`` in
``max``. An argument of more than ``MAX_ARGUMENT`` nodes is not repeated in this way: nested
functions would double it each time. Expressions of one form may round differently in a narrow type,
but compute the same function.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import pi, prod, sqrt

import numpy as np

from tilewright.spaces.dtypes import EXACT_WIDE
from tilewright.spaces.language.affine import Affine, affine, differences
from tilewright.spaces.language.functions import FUNCTIONS
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Negation,
    Number,
    Read,
    Select,
)

MAX_ARGUMENT = 100
"""Nodes of what a function that is spelt out may be called with."""


@dataclass(frozen=True)
class Form:
    """A node: its label, what is below, and whether the order of that matters.

    ``name`` is that of an axis (label ``axis``) or array (label ``read``), which has a value
    ``outside`` or none; ``value`` is that of a constant, whose label has fewer digits.
    """

    label: str
    children: tuple[Form, ...] = ()
    ordered: bool = True
    name: str = ""
    outside: float | None = None
    value: float | None = None

    @cached_property
    def nodes(self) -> int:
        """The number of nodes, this one and all below it."""
        return 1 + sum(child.nodes for child in self.children)


def normal(expression: Expression) -> Form:
    """Return the normal form."""
    match expression:
        case Number(value):
            return _number(value)
        case AxisValue(name):
            return Form("axis", name=name)
        case Read(name, indices, outside):
            return Form("read", tuple(map(_index, indices)), name=name, outside=outside)
        case Negation(inner):
            return _product([_number(-1.0), normal(inner)])
        case Binary(operator, left, right):
            return _binary(operator, normal(left), normal(right))
        case Comparison():
            return _comparison(expression)
        case Select():
            return Form("select", tuple(map(normal, expression.children)))
        case Call(function, arguments):
            return _call(function, [normal(argument) for argument in arguments])
    raise TypeError(f"{expression} has no normal form")


def _number(value: float) -> Form:
    value += 0.0  # there is no minus zero
    label = f"{value:.12g}"
    if abs(value) < EXACT_WIDE and value.is_integer() and float(label) != value:
        label = f"{value:.0f}"
    return Form(label, value=value)


def _constant(form: Form) -> bool:
    return form.value is not None


def _binary(operator: str, left: Form, right: Form) -> Form:
    match operator:
        case "+":
            return _sum([left, right])
        case "-":
            return _sum([left, _product([_number(-1.0), right])])
        case "*":
            return _product([left, right])
        case "/":
            return _product([left, _inverse(right)])
    return Form(operator, (left, right))


def _sum(terms: Sequence[Form]) -> Form:
    flat = [inner for term in terms for inner in (term.children if term.label == "+" else (term,))]
    constant = sum(term.value or 0.0 for term in flat if _constant(term))
    others = [term for term in flat if not _constant(term)]
    kept = [*others, _number(constant)] if constant or not others else others
    return kept[0] if len(kept) == 1 else Form("+", tuple(kept), ordered=False)


def _product(factors: Sequence[Form]) -> Form:
    flat = [inner for f in factors for inner in (f.children if f.label == "*" else (f,))]
    constant = prod(factor.value or 0.0 for factor in flat if _constant(factor))
    others = [factor for factor in flat if not _constant(factor)]
    if constant == -1.0 and len(others) == 1 and others[0].label == "+":
        return _negated(others[0])
    if constant != 1.0 or len(others) > 1:
        constant *= (-1.0) ** sum(map(_is_minus, others))
        others = [_negated(factor) if _is_minus(factor) else factor for factor in others]
    kept = [*others, _number(constant)] if constant != 1.0 or not others else others
    return kept[0] if len(kept) == 1 else Form("*", tuple(kept), ordered=False)


def _negated(total: Form) -> Form:
    """Minus a sum, term by term."""
    return _sum([_product([_number(-1.0), term]) for term in total.children])


def _is_minus(form: Form) -> bool:
    """Tell whether most terms of a sum are negative. The minus then moves to the product around the
    sum.
    """
    signs = [_sign(term) for term in form.children] if form.label == "+" else []
    return sum(signs) < 0


def _sign(form: Form) -> int:
    values = [f.value for f in (form.children if form.label == "*" else (form,)) if f.value]
    return -1 if prod(values) < 0 else 1


def _inverse(form: Form) -> Form:
    if _constant(form) and form.value:
        return _number(1.0 / form.value)
    if form.label == "*":
        return _product([_inverse(factor) for factor in form.children])
    if _is_minus(form):
        return _product([_number(-1.0), _inverse(_negated(form))])
    return form.children[0] if form.label == "1/" else Form("1/", (form,))


def _comparison(comparison: Comparison) -> Form:
    """Normalise a comparison: for indices a difference that is not negative; otherwise one of ``<
    <= == !=``.
    """
    sides = _folded(comparison.left), _folded(comparison.right)
    comparison = Comparison(comparison.operator, *sides)
    if comparison.operator not in ("==", "!="):
        for difference in differences(comparison):
            return Form("0 <=", (_affine(difference),))
    left, right = normal(comparison.left), normal(comparison.right)
    match comparison.operator:
        case ">" | ">=":
            return Form(comparison.operator.replace(">", "<"), (right, left))
        case "<" | "<=":
            return Form(comparison.operator, (left, right))
    return Form(comparison.operator, (left, right), ordered=False)


def _folded(expression: Expression) -> Expression:
    """Fold all that is constant into one number."""
    value = normal(expression).value
    if value is None:
        return expression.with_children(tuple(map(_folded, expression.children)))
    return Negation(Number(-value)) if value < 0 else Number(value)


def _index(index: Expression) -> Form:
    return _affine(affine(index))


def _affine(index: Affine) -> Form:
    terms = [_product([_number(float(c)), _atom(atom)]) for atom, c in index.terms]
    return _sum([*terms, _number(float(index.constant))])


def _atom(atom: Expression) -> Form:
    match atom:
        case Binary(operator, inner, by):  # a quotient or a remainder
            return Form(operator, (_index(inner), _index(by)))
    return normal(atom)


def _call(function: str, arguments: Sequence[Form]) -> Form:
    if all(map(_constant, arguments)):
        values = [argument.value for argument in arguments]
        with np.errstate(all="ignore"):
            return _number(float(FUNCTIONS[function].reference(*values)))
    small = arguments[0].nodes <= MAX_ARGUMENT
    match function, arguments:
        case "gelu", [x] if small:
            return _product([_number(0.5), x, _one_plus("erf", _scaled(x, sqrt(0.5)))])
        case "gelu_tanh", [x] if small:
            inner = _sum([x, _product([_number(0.044715), x, x, x])])
            return _product([_number(0.5), x, _one_plus("tanh", _scaled(inner, sqrt(2.0 / pi)))])
        case "silu", [x] if small:
            return _product([x, _call("sigmoid", [x])])
        case "sigmoid", [x]:
            return _inverse(_one_plus("exp", _scaled(x, -1.0)))
        case "relu", [x]:
            return _extreme("max", [x, _number(0.0)])
        case "rsqrt", [x]:
            return _inverse(_call("sqrt", [x]))
        case "max" | "min", _:
            return _extreme(function, arguments)
    return Form(function, tuple(arguments))


def _extreme(function: str, arguments: Sequence[Form]) -> Form:
    """Return the greatest or least of all arguments, in whatever groups, and of one constant at
    most."""
    flat = [inner for a in arguments for inner in (a.children if a.label == function else (a,))]
    constants = [form.value for form in flat if form.value is not None]
    others = [form for form in flat if not _constant(form)]
    numbers = [_number((max if function == "max" else min)(constants))] if constants else []
    return Form(function, (*others, *numbers), ordered=False)


def _scaled(x: Form, factor: float) -> Form:
    return _product([_number(factor), x])


def _one_plus(function: str, x: Form) -> Form:
    return _sum([_number(1.0), _call(function, [x])])
