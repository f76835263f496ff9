"""Axes whose extent calls may give: the outermost of every array that has them."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tilewright.spaces.kernel import Call
from tilewright.spaces.language.program import Program
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.product import Product
from tilewright.spaces.workloads.workload import Workload

SEVERAL = "several arrays are written"
"""The reason why no axis of a product is open."""


def opened(call: Call, workload: Workload, axis: str) -> Call:
    """Return the call of a kernel of a workload, the extent of whose ``axis`` is open, at the
    workload's extent."""
    places = dimensions(workload, axis)
    given = tuple(replace(a, open=places.get(a.array.name)) for a in call.arguments)
    return replace(call, arguments=given, open_axis=axis, extent=workload.extents[axis])


def dimensions(workload: Workload, axis: str) -> dict[str, int]:
    """Return the dimension of each array that is an axis which :func:`why_not_outermost` has no
    reason against, or :func:`why_no_open_rows` or
    :func:`why_no_open_batch`; arrays without it are left out."""
    if matmul := workload.matmul:
        arrays = (*matmul.indexed, *matmul.outputs)
        return {a.name: a.axes.index(axis) for a in arrays if axis in a.axes}
    program = workload.program
    found = {s.name: s.axes.index(axis) for s in program.stages if axis in s.axes}
    for node in _nodes([*program.conditions, *(stage.body for stage in program.stages)]):
        if isinstance(node, Read) and AxisValue(axis) in node.indices:
            found[node.name] = node.indices.index(AxisValue(axis))
    return found


def why_not_outermost(program: Program, axis: str, reduced: bool = False) -> str | None:
    """Say why places of elements depend on the extent of an axis, or values of one point on
    others; None if neither does.

    The axis has to be the outermost one in memory of every array that has it, and an index
    by itself: so points lie one after the other, however many there are. One that is ``reduced``
    may be a value, too, as in conditions.
    """
    arrays: Mapping[str, Array] = {a.name: a for a in (*program.operands, *program.outputs)}
    if not reduced and any(axis in stage.over for stage in program.stages):
        return f"{axis} is reduced"
    for stage in program.stages:
        written = arrays.get(stage.name)
        if written and axis in stage.axes and not written.is_outermost(stage.axes.index(axis)):
            return f"{axis} is not the outermost axis of {stage.name} in memory"
    for node in _nodes([*program.conditions, *(stage.body for stage in program.stages)]):
        if isinstance(node, AxisValue) and node.name == axis and not reduced:
            return f"the program computes with {axis}"
        if isinstance(node, Read) and any(_is_within(axis, at) for at in node.indices):
            return f"{axis} is no index by itself in {node}"
        if isinstance(node, Read) and node.name in arrays:
            places = [place for place, at in enumerate(node.indices) if at == AxisValue(axis)]
            if not all(map(arrays[node.name].is_outermost, places)):
                return f"{axis} is not the outermost axis of {node.name} in memory"
    return None


def why_no_open_rows(product: Product, axis: str) -> str | None:
    """Say why calls of a product cannot give the extent of an axis: rows alone can be open, where
    they are the outermost axis, and one array is written."""
    if product.matmul.further:
        return SEVERAL
    if axis != product.row or product.batch:
        return f"{axis} is not the rows of one product"
    return _why_not_outermost_of(product, axis)


def why_no_open_batch(product: Product, axis: str) -> str | None:
    """Say the same for the axis of a batch: the slowest one can be open, where it is the outermost
    axis."""
    if product.matmul.further:
        return SEVERAL
    if axis not in product.batch[:1]:
        return f"{axis} is not the slowest axis of a batch of products"
    return _why_not_outermost_of(product, axis)


def _why_not_outermost_of(product: Product, axis: str) -> str | None:
    matmul = product.matmul
    own = (o for o in (*matmul.indexed, matmul.output) if axis in o.axes)
    inner = [o.name for o in own if not o.is_outermost(o.axes.index(axis))]
    return f"{axis} is not the outermost axis of {inner[0]} in memory" if inner else None


def _is_within(axis: str, index: Expression) -> bool:
    """Tell whether an index is computed from an axis."""
    own = AxisValue(axis)
    return index != own and own in _nodes([index])


def _nodes(roots: Iterable[Expression]) -> Iterator[Expression]:
    """Yield reads, and all other parts of expressions but indices that are an axis."""
    pending = [*roots]
    while pending:
        node = pending.pop()
        yield node
        children = node.indices if isinstance(node, Read) else node.children
        pending += [
            child
            for child in children
            if not (isinstance(node, Read) and isinstance(child, AxisValue))
        ]
