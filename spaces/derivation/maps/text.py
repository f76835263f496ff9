"""Forms of loops as C text of whole numbers, and comparisons in their simplest form."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.spaces.derivation.maps.view import MapView
from tilewright.spaces.derivation.products.forms import (
    Atom,
    Entry,
    Form,
    Limits,
    Quotient,
    divided,
    span,
)


def form_text(form: Form, atom: Callable[[Atom], str]) -> str:
    """Return a form as a C expression that is safe in a product, with the text of ``atom`` for
    each."""
    words = [atom(a) if factor == 1 else f"{factor} * {atom(a)}" for a, factor in form.terms]
    if form.constant or not words:
        words.append(str(form.constant))
    return words[0] if len(words) == 1 and not form.constant else f"({' + '.join(words)})"


def entry_offset(view: MapView, entry: Entry) -> Form:
    """Write the place of an entry of an index table, in elements from its start."""
    offset = Form()
    strides = view.program.operand[entry.table].strides
    for index, stride in zip(entry.indices, strides, strict=True):
        offset = offset + index * stride
    return offset


def may_be_negative(view: MapView, quotient: Quotient) -> bool:
    """Tell whether a dividend may be negative. C would then round the quotient up."""
    known = span(quotient.dividend, view.limits)
    return known is None or known[0] < 0


def simplest(form: Form, operator: str, limits: Limits) -> tuple[Form, str]:
    """Return ``form operator 0``, of fewer loops if it can be: ``64 * p + q - 64 < 0`` is ``p - 1 <
    0`` where ``q`` is below 64."""
    if operator in (">", "<="):
        form, operator = form - Form((), 1), {">": ">=", "<=": "<"}[operator]
    if operator in ("<", ">="):
        for divisor in sorted({abs(factor) for _, factor in form.terms} - {1}, reverse=True):
            quotient = divided(form, divisor, limits)
            if quotient.axes < form.axes:
                return quotient, operator
    return form, operator
