"""The sums of products that a workload begins with, by NumPy, for its reference.

They are worked out in blocks: what NumPy has begun cannot be interrupted, and the copies of the
inputs in the wide type need little memory that way.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np

from tilewright.spaces.dtypes import dtype

if TYPE_CHECKING:
    from tilewright.spaces.workloads.matmul import Matmul, Operand

BLOCK_TERMS = 2**30
"""Products of one block at most: some tenths of a second."""

BLOCK_ELEMENTS = 2**23
"""Elements of one array that belong to a block at most: 64 MiB in the wide type."""

Block = dict[str, slice]
"""A range of each axis."""


def sums_of_products(
    matmul: Matmul,
    inputs: Mapping[str, np.ndarray],
    pause: Callable[[], None],
    by_blas: bool = True,
) -> np.ndarray:
    """Return the exact sums, in float64 or int64, of the output's shape.

    ``pause`` is called before each block, and may raise to end the work.
    """
    wide = np.int64 if dtype(matmul.accumulator).is_integer else np.float64
    sums = np.zeros(matmul.output.shape, wide)
    factors = [(operand, operand.plain(inputs[operand.name])) for operand in matmul.factors]
    for block in blocks(matmul):
        pause()
        terms = [given[_within(block, operand)].astype(wide) for operand, given in factors]
        sums[_within(block, matmul.output)] += _contract(matmul, terms, by_blas)
    return sums


def blocks(matmul: Matmul) -> Iterator[Block]:
    """Return the blocks that cover all axes, made by halving the longest axis as often as it
    takes."""
    return _halved(matmul, {axis.name: slice(0, axis.extent) for axis in matmul.axes})


def _halved(matmul: Matmul, block: Block) -> Iterator[Block]:
    lengths = {name: part.stop - part.start for name, part in block.items()}
    arrays = (*matmul.factors, matmul.output)
    most = max(prod(lengths[axis] for axis in operand.axes) for operand in arrays)
    if prod(lengths.values()) <= BLOCK_TERMS and most <= BLOCK_ELEMENTS:
        yield block
        return
    longest = max(lengths, key=lambda name: lengths[name])
    part = block[longest]
    middle = (part.start + part.stop) // 2
    yield from _halved(matmul, {**block, longest: slice(part.start, middle)})
    yield from _halved(matmul, {**block, longest: slice(middle, part.stop)})


def _within(block: Block, operand: Operand) -> tuple[slice, ...]:
    return tuple(block[axis] for axis in operand.axes)


def _contract(matmul: Matmul, terms: list[np.ndarray], by_blas: bool) -> np.ndarray:
    """Return the sum of products over the reduction axes, by matrix product where that is what it
    is."""
    if by_blas and len(matmul.output.axes) > 2:
        return _batched(matmul, terms)
    names = {axis.name: i for i, axis in enumerate(matmul.axes)}
    arguments: list[Any] = []
    for operand, term in zip(matmul.factors, terms, strict=True):
        arguments += [term, [names[axis] for axis in operand.axes]]
    arguments.append([names[axis] for axis in matmul.output.axes])
    return np.einsum(*arguments, optimize=by_blas)


def _batched(matmul: Matmul, terms: list[np.ndarray]) -> np.ndarray:
    """Return a batch of products, each by a BLAS, which :func:`numpy.einsum` would not ask."""
    from tilewright.spaces.workloads.product import orient  # which reads workloads

    product = orient(matmul)
    given = dict(zip((operand.name for operand in matmul.factors), terms, strict=True))
    left, right = product.left, product.right
    sums = np.matmul(
        _arranged(given[left.name], left.axes, (*product.batch, product.row, product.depth)),
        _arranged(given[right.name], right.axes, (*product.batch, product.depth, product.column)),
    )
    return _arranged(sums, (*product.batch, product.row, product.column), product.output.axes)


def _arranged(array: np.ndarray, axes: Sequence[str], wanted: Sequence[str]) -> np.ndarray:
    """Return the array with its dimensions as ``wanted``; those that it lacks have one element."""
    present = [axes.index(axis) for axis in wanted if axis in axes]
    missing = [place for place, axis in enumerate(wanted) if axis not in axes]
    return np.expand_dims(array.transpose(present), missing)
