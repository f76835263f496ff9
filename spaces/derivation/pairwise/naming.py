"""The axes of a sum named as those of the products that it reads.

``dk[g, j] = sum[i, u](p[2 * g + u, i, j] * ...)`` reads ``p[h, i, j]`` at ``h = 2 * g + u``: so
``g`` is ``h // 2``, ``u`` is ``h % 2``, and the sum is over the heads ``h`` of a group.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.errors import InputError
from tilewright.spaces.language.affine import Affine, affine
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Comparison,
    Expression,
    Number,
    Read,
)


@dataclass(frozen=True)
class Named:
    """A sum whose ``body``, ``axes``, axes ``over`` and ``conditions`` are of the products' axes,
    and of axes of its ``own``."""

    stage: Stage
    axes: tuple[Expression, ...]
    over: tuple[Expression, ...]
    body: Expression
    conditions: tuple[Comparison, ...]
    own: tuple[str, ...]

    @property
    def expressions(self) -> Iterator[Expression]:
        """All expressions, and reads at all axes: those of places."""
        yield self.body
        yield from self.conditions
        yield Read(self.stage.name, (*self.axes, *self.over))


def named_alike(program: Program, stage: Stage, products: Sequence[Stage]) -> Named:
    """Return a sum so; :class:`InputError` if it reads none of ``products``, or one elsewhere."""
    known = {product.name: product for product in products}
    read = next((r for r in stage.body.value_reads if r.name in known), None)
    if read is None:
        raise InputError(f"{stage.name} reads no product of rows and keys")
    names: dict[str, Expression] = {}
    places: dict[Expression, Expression] = {}
    for axis, index in zip(known[read.name].axes, read.indices, strict=True):
        names |= _solved(program, axis, index)
        places[index] = AxisValue(axis)
    free = [axis for axis in (*stage.axes, *stage.over) if axis not in names]

    def of(node: Expression) -> Expression:
        return _renamed(node, places, names)

    conditions = tuple(of(each) for each in program.bounding(stage))
    return Named(
        stage,
        tuple(of(AxisValue(axis)) for axis in stage.axes),
        tuple(of(AxisValue(axis)) for axis in stage.over),
        of(stage.body),
        tuple(each for each in conditions if isinstance(each, Comparison)),
        tuple(free),
    )


def _solved(program: Program, axis: str, index: Expression) -> dict[str, Expression]:
    """Return the axes of a sum, as expressions of the ``axis`` that is read at ``index``."""
    extent = program.extent
    match affine(index):
        case Affine(((AxisValue(name), 1),), 0) if extent[name] == extent[axis]:
            return {name: AxisValue(axis)}
        case Affine(
            ((AxisValue(fast), 1), (AxisValue(slow), count))
            | ((AxisValue(slow), count), (AxisValue(fast), 1)),
            0,
        ) if count == extent[fast] and count * extent[slow] == extent[axis]:
            by = Number(float(count))
            return {
                slow: Binary("//", AxisValue(axis), by),
                fast: Binary("%", AxisValue(axis), by),
            }
    raise InputError(f"{index} is no place of {axis} that a group and a place in it give")


def _renamed(
    node: Expression, places: Mapping[Expression, Expression], names: Mapping[str, Expression]
) -> Expression:
    if node in places:
        return places[node]
    if isinstance(node, AxisValue):
        return names.get(node.name, node)
    return node.with_children(tuple(_renamed(child, places, names) for child in node.children))
