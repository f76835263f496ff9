"""The arrays that TMA moves: rows of the left operand, keys, values, and the output."""

from __future__ import annotations

from dataclasses import replace

from tilewright.spaces.cuda.chained_hopper.fetching.tiles import Boxes, row_box
from tilewright.spaces.cuda.chained_hopper.fetching.transposing import TransposedCopy
from tilewright.spaces.cuda.chained_hopper.sizes import ChainedSizes
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.language.tree import Expression, Read


def left_boxes(chained: Chained) -> Boxes:
    """Return the boxes of the left operand."""
    return _boxes(chained, chained.left, chained.depth, row_box(chained))


def key_boxes(chained: Chained, matrix: Expression, columns: Part, keys: int) -> Boxes:
    """Return boxes of ``keys`` rows of an operand that has a row for each key."""
    return _boxes(chained, matrix, columns, ((chained.key, keys),))


def right_boxes(sizes: ChainedSizes, keys: int) -> Boxes:
    """Return boxes of ``keys`` keys of the right operand, whichever way it lies in memory."""
    chained = sizes.chained
    if not sizes.lies_along_keys:
        return key_boxes(chained, chained.right, chained.depth, keys)
    depth = ((chained.depth, sizes.depth),)
    return replace(_boxes(chained, chained.right, chained.key, depth), count=keys)


def value_boxes(sizes: ChainedSizes, keys: int) -> Boxes:
    """Return boxes of the values of ``keys`` keys; from the transposed copy, if there is one."""
    chained = sizes.chained
    if sizes.has_bytes:
        return TransposedCopy(chained).boxes(keys, sizes.width)
    return key_boxes(chained, chained.weighings[0].matrix, chained.width, keys)


def output_boxes(chained: Chained) -> Boxes | None:
    """Return the boxes of the one wide output, if TMA can store it; else None.

    Its elements have 16 bits, and the operands' dtype if those have 16 bits, too.
    """
    wide = [output for output in chained.outputs if output.wide]
    if len(wide) != 1 or wide[0].array.element.bytes != 2:
        return None
    operand = left_boxes(chained).array
    if operand.element.bytes == 2 and wide[0].array.dtype != operand.dtype:
        return None
    rows, heads = row_box(chained), chained.batch
    boxes = Boxes(
        wide[0].array, wide[0].offset, chained.width, rows, heads, open_axis=chained.open_axis
    )
    return None if boxes.why_not() else boxes


def _boxes(
    chained: Chained, matrix: Expression, columns: Part, box: tuple[tuple[Part, int], ...]
) -> Boxes:
    assert isinstance(matrix, Read)
    operand = chained.program.operand[matrix.name]
    offset = chained.places[matrix].offset
    return Boxes(operand, offset, columns, box, chained.batch, open_axis=chained.open_axis)
