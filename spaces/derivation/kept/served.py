"""Requirements of templates along kept axes on a program, on all targets."""

from __future__ import annotations

from collections.abc import Collection

from tilewright.spaces.algebra.atoms import Entry, names_of
from tilewright.spaces.algebra.index import Index
from tilewright.spaces.derivation.kept.view import Bounded, KeptView
from tilewright.spaces.derivation.maps.view import Access


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
        indices = [access.offset]
        if isinstance(access, Bounded):
            indices += [bound.index for bound in access.bounds]
            if reason := _why_no_bound(view, access):
                return reason
        for index in indices:
            if reason := _why_no_index(view, access, index):
                return reason
    return None


def why_no_array(view: KeptView, values: Collection[str]) -> str | None:
    """Say why kernels of these dtypes cannot read or write an array; None if they can."""
    for access in (*view.reads.values(), *view.outputs):
        if access.array.dtype not in values:
            allowed = ", ".join(values)
            return f"{access.array.name} is {access.array.dtype}; allowed: {allowed}"
    return None


def _why_no_index(view: KeptView, access: Access, index: Index) -> str | None:
    inner = {view.lane.name, *(loop.name for loop in view.taps)}
    for atom, _ in index.compound:
        where = f"{access.array.name} is read at {atom.formula}"
        if isinstance(atom, Entry):
            return f"{where}, an entry of a table"
        least, _ = atom.span
        if least is None or least < 0 or not inner.isdisjoint(names_of(atom)):
            return f"{where}, which is not equally far apart"
    return None


def _why_no_bound(view: KeptView, access: Bounded) -> str | None:
    for bound in access.bounds:
        if bound.index.compound or bound.index.coefficient(view.lane.name) < 0:
            return f"{access.array.name} ends where {bound} does, which is no plain border"
    return None
