"""Requirements of templates along kept axes on a program, on all targets."""

from __future__ import annotations

from collections.abc import Collection

from tilewright.spaces.derivation.kept.view import Bounded, KeptView
from tilewright.spaces.derivation.maps.view import Access
from tilewright.spaces.derivation.products.forms import Entry, Form, Quotient, axes_of, span


def why_no_place(view: KeptView) -> str | None:
    """Say why elements of neighbours cannot be found together, in words; None if they can."""
    lane = view.lane.name
    for output in view.outputs:
        if output.step(lane) != 1 and view.lane.extent > 1:
            return (
                f"{output.array.name} is not written side by side along the fastest axis of "
                f"{view.outputs[0].array.name}"
            )
    for access in (*view.reads.values(), *view.outputs):
        forms = [access.offset]
        if isinstance(access, Bounded):
            forms += [bound.index for bound in access.bounds]
            if reason := _why_no_bound(view, access):
                return reason
        for form in forms:
            if reason := _why_no_form(view, access, form):
                return reason
    return None


def why_no_array(view: KeptView, values: Collection[str]) -> str | None:
    """Say why kernels of these dtypes cannot read or write an array; None if they can."""
    for access in (*view.reads.values(), *view.outputs):
        if access.array.dtype not in values:
            allowed = ", ".join(values)
            return f"{access.array.name} is {access.array.dtype}; allowed: {allowed}"
    return None


def _why_no_form(view: KeptView, access: Access, form: Form) -> str | None:
    inner = {view.lane.name, *(loop.name for loop in view.taps)}
    for atom, _ in form.terms:
        if isinstance(atom, Entry):
            return f"{access.array.name} is read at {atom}, an entry of a table"
        if isinstance(atom, Quotient):
            known = span(atom.dividend, view.limits)
            if known is None or known[0] < 0 or not inner.isdisjoint(axes_of(atom)):
                return f"{access.array.name} is read at {atom}, which is not equally far apart"
    return None


def _why_no_bound(view: KeptView, access: Bounded) -> str | None:
    for bound in access.bounds:
        steps = [atom for atom, _ in bound.index.terms if not isinstance(atom, str)]
        if steps or bound.index.coefficient(view.lane.name) < 0:
            return f"{access.array.name} ends where {bound} does, which is no plain border"
    return None
