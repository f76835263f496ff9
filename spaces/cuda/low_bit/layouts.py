"""Says where a kernel with packed codes keeps its operands and sums, in words and formulas."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.spaces.cuda.low_bit.matrix import MatrixCode
from tilewright.spaces.cuda.low_bit.scalar import ScalarCode
from tilewright.spaces.cuda.low_bit.sizes import ACTIVATION, COLUMNS, FLOAT
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS, Slot, slots, tile_bytes

LANE = "lane 4 * g + t"


def layouts(code: ScalarCode | MatrixCode) -> Iterator[str]:
    """Yield a line for each array in memory, in shared memory and in registers.

    Rows and columns are those of a block, and the depth is that of a tile of codes.
    """
    values, sizes = code.sizes.values, code.sizes
    product, bits = code.product, code.decoding.bits
    q, tiles = product.codes.name, values["warp_tiles"]
    yield (
        f"{q} in memory: [{sizes.deep} of {DEPTH} of the depth][{sizes.tiles} of {ROWS} columns]"
        f"[{tile_bytes(bits)} bytes]"
    )
    yield f"{q} in registers: w[{values['in_flight']} tiles][{tiles} tiles][{bits} words]"
    yield f"  {LANE} has columns g + {ROWS // HALVES} * h, depth 8 * step + 2 * t and the next:"
    for step, halves in enumerate(slots(bits)):
        places = ", ".join(f"h = {half} in {_place(slot)}" for half, slot in enumerate(halves))
        yield f"    step {step}: {places}"
    yield from _of_fragments(code) if isinstance(code, MatrixCode) else _of_numbers(code)
    yield (
        f"sums in shared memory: float[{values['warp_depth']} warps][{sizes.rows} rows]"
        f"[{sizes.columns} columns]"
    )
    yield f"shared memory: {sizes.shared_bytes} bytes; registers: about {sizes.registers}"


def _place(slot: Slot) -> str:
    """Say where both codes of a pair are."""
    return " and ".join(f"w{p.word} bits {p.place} and {p.place + 16} on ({p.bits})" for p in slot)


def _of_numbers(code: ScalarCode) -> Iterator[str]:
    sizes, values = code.sizes, code.sizes.values
    depth = values["block_depth"] * DEPTH
    yield f"activations in shared memory: float[{sizes.rows} rows][{depth} of the depth]"
    sums = f"[{values['warp_tiles']} tiles][{sizes.rows} rows][{HALVES} halves h]"
    yield f"sums in registers: s{sums}"
    yield f"  {LANE} has a fourth of the terms of columns g + {ROWS // HALVES} * h"


def _of_fragments(code: MatrixCode) -> Iterator[str]:
    sizes, values, kind = code.sizes, code.sizes.values, code.pairs.kind
    yield f"left operand in registers: a[4] pairs of {kind}, decoded for each 16 of the depth"
    column = f"g + {ROWS // HALVES}"
    yield f"  {LANE}, i: column {column} * (i % 2), depth 2 * t + 8 * (i / 2) and the next"
    tile, stages = code.fragments.shared, 1 + bool(sizes.share > values["block_depth"])
    yield (
        f"activations in shared memory: {kind}[{stages} stages][{values['block_depth']} tiles]"
        f"[{tile.size} elements]"
    )
    yield f"  row, depth at {tile.emit('row', 'depth')}: pieces of 16 bytes meet all banks"
    yield (
        f"right operand in registers: b[{code.fragments.count}][4] pairs of {kind}, by ldmatrix "
        f"({ACTIVATION * 8} bytes a row)"
    )
    yield f"  {LANE}, i: row 16 * j + g + 8 * (i / 2), depth 2 * t + 8 * (i % 2) and the next"
    count = int(sizes.rows) // COLUMNS
    yield f"sums in registers: s[{values['warp_tiles']} tiles][{count}][4], {FLOAT} bytes each"
    yield (f"  {LANE}, i: row {COLUMNS} * r + 2 * t + i % 2, column {column} * (i / 2)")
