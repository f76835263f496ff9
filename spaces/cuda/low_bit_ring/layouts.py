"""Says where a kernel whose packed codes stream through rings keeps its operands and sums."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.spaces.cuda.low_bit.layouts import LANE, of_codes, of_sums
from tilewright.spaces.cuda.low_bit.sizes import ACTIVATION, COLUMNS
from tilewright.spaces.cuda.low_bit_ring.code import RingCode
from tilewright.spaces.cuda.low_bit_ring.sizes import RingSizes
from tilewright.spaces.cuda.mma.fragments import FRAGMENT
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS, tile_bytes
from tilewright.spaces.low_bit.quads import quads


def layouts(code: RingCode) -> Iterator[str]:
    """Yield a line for each array in memory, in shared memory and in registers."""
    sizes, kind = code.sizes, code.sizes.pairs.kind
    bits, count = sizes.pairs.decoding.bits, int(sizes.rows) // COLUMNS
    tiles, ring = sizes.values["warp_tiles"], _ring(sizes)
    yield from of_codes(sizes, bits, f"[{sizes.values['interleave']} tiles]")
    q = sizes.product.codes.name
    yield f"{q} in shared memory: {ring}[{sizes.block_tiles} tiles][{tile_bytes(bits)} bytes]"
    column, many, deep = f"g + {ROWS // HALVES}", "pairs", "depth 2 * t + 8 * (i / 2) and the next"
    if sizes.has_bytes:
        many, deep = "quads", f"quad i / 2: bytes of depth 2 * t of steps {quads(bits)}, the next"
    along = FRAGMENT * ACTIVATION // sizes.activation
    yield f"left operand in registers: a[4] {many} of {kind}, decoded for each {along} of the depth"
    yield f"  {LANE}, i: column {column} * (i % 2), {deep}"
    place = code.ring.place_of("row", "piece").text
    yield f"activations in shared memory: {kind}{ring}[{sizes.rows} rows][{DEPTH} of the depth]"
    yield f"  row, piece of 16 bytes at byte {place}: pieces meet all banks"
    if sizes.on_warpgroups:
        yield f"right operand: read there by wgmma, {sizes.rows} rows at once"
    elif sizes.has_bytes:
        yield f"right operand in registers: b[{count}][4] quads of {kind}, of two loads each"
        yield f"  {LANE}, i: row 8 * r + g, quad i of 64 of the depth"
    else:
        yield f"right operand in registers: b[{count}][4] pairs of {kind}, by ldmatrix"
        yield f"  {LANE}, i: row 8 * r + g, depth 8 * i + 2 * t and the next"
    if segments := sizes.segments:
        yield (
            f"segments of {segments.table.name} in shared memory: int[2][{segments.count + 1}], "
            "their first rows and tiles"
        )
        tile = f"{sizes.rows} rows of a segment and {sizes.columns} columns"
        yield f"  {sizes.blocks} blocks take tiles of {tile} in turns"
    each = f"[{count * 4}]" if sizes.on_warpgroups else f"[{count}][4]"
    yield f"sums in registers: s[{tiles} tiles]{each}"
    yield f"  {LANE}, i: row {COLUMNS} * r + 2 * t + i % 2, column {column} * (i / 2)"
    yield from of_sums(sizes)


def _ring(sizes: RingSizes) -> str:
    values = sizes.values
    return (
        f"[{values['warp_depth']} rings][{values['stages']} stages]"
        f"[{values['stage_depth']} tiles of the depth]"
    )
