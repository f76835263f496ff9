"""Programs of one product whose factors are packed first: copies of them have neighbours in memory
that are neighbours in the depth, as tensor cores and wide copies want them.

Images with channels first are such factors: their neighbours are pixels, and no window of them has
many side by side.
"""

from __future__ import annotations

from dataclasses import replace

from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.products.view import Factor, PlacedProduct
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.tree import AxisValue, Expression, Read


def packed(product: PlacedProduct) -> tuple[Program, ...] | str:
    """Return the program of each copy, then that of the product of them; or why there are none.
    What is multiplied as it lies is not copied."""
    program = product.program
    factors = [product.left, product.right]
    if product.left.gather or product.segments:
        return "tables choose what is multiplied; needs factors that are copied as a whole"
    fastest = _fastest(product)
    if fastest is None:
        return "no part of the depth has a dimension of its own in both factors"
    places = {f.operand.name: _dimensions(f, fastest)[0] for f in factors}
    copied = [f for f in factors if f.operand.strides[places[f.operand.name]] != 1]
    if not copied:
        return f"neighbours of both factors in memory are neighbours along {fastest.name}"
    names = {factor.operand.name: f"{factor.operand.name}_packed" for factor in copied}
    if {*program.operand, *program.stage} & set(names.values()):
        return f"{', '.join(names.values())} are names of the program's own"
    orders = {name: _last(program.operand[name], places[name]) for name in names}
    copies = [_copy(program.operand[name], names[name], order) for name, order in orders.items()]
    operands = [copy.outputs[0] for copy in copies]
    whole = replace(
        program,
        operands=(
            *(o for o in program.operands if o.name not in names),
            *(Operand(o.name, o.dtype, o.shape, o.order) for o in operands),
        ),
        stages=tuple(replace(s, body=_reading(s.body, names, orders)) for s in program.stages),
    )
    return (*copies, whole)


def _fastest(product: PlacedProduct) -> Part | None:
    """Return the largest part of the depth that alone counts along a dimension of each factor."""
    parts = [
        part
        for part in product.depth
        if part.extent > 1 and all(_dimensions(f, part) for f in (product.left, product.right))
    ]
    return max(parts, key=lambda part: part.extent, default=None)


def _dimensions(factor: Factor, part: Part) -> list[int]:
    """Return the dimensions of a factor whose index is this part."""
    return [d for d, index in enumerate(factor.indices) if index == part.index]


def _last(operand: Operand, dimension: int) -> tuple[int, ...]:
    """Return the dimensions as they lie, but for one that comes last."""
    return (*(d for d in operand.order if d != dimension), dimension)


def _copy(operand: Operand, name: str, order: tuple[int, ...]) -> Program:
    """Return the program that lays an operand in another order of its dimensions."""
    axes = [f"i{dimension}" for dimension in range(len(operand.shape))]
    read = Read(operand.name, tuple(map(AxisValue, axes)))
    turned = tuple(axes[dimension] for dimension in order)
    shape = tuple(operand.shape[dimension] for dimension in order)
    return Program(
        extents=tuple(zip(turned, shape, strict=True)),
        operands=(operand,),
        stages=(Stage(name, turned, None, (), read),),
        conditions=(),
        outputs=(Output(name, operand.dtype, shape, tuple(range(len(shape)))),),
    )


def _reading(
    node: Expression, names: dict[str, str], orders: dict[str, tuple[int, ...]]
) -> Expression:
    """Return an expression that reads copies instead."""
    children = tuple(_reading(child, names, orders) for child in node.children)
    if isinstance(node, Read) and node.name in names:
        turned = tuple(children[dimension] for dimension in orders[node.name])
        return replace(node, name=names[node.name], indices=turned)
    return node.with_children(children)
