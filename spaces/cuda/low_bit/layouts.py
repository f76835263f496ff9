"""Says where a kernel with packed codes keeps its operands and sums, in words and formulas."""

from __future__ import annotations

from collections.abc import Iterator

from tilewright.spaces.cuda.low_bit.scalar import ScalarCode
from tilewright.spaces.cuda.low_bit.sizes import CodedSizes
from tilewright.spaces.low_bit.order import DEPTH, HALVES, ROWS, Slot, slots, tile_bytes

LANE = "lane 4 * g + t"


def layouts(code: ScalarCode) -> Iterator[str]:
    """Yield a line for each array in memory, in shared memory and in registers.

    Rows and columns are those of a block, and the depth is that of a tile of codes.
    """
    values, sizes = code.sizes.values, code.sizes
    tiles = values["warp_tiles"]
    yield from of_codes(sizes, code.decoding.bits, f"[{values['in_flight']} tiles][{tiles} tiles]")
    depth = values["block_depth"] * DEPTH
    yield f"activations in shared memory: float[{sizes.rows} rows][{depth} of the depth]"
    yield f"sums in registers: s[{tiles} tiles][{sizes.rows} rows][{HALVES} halves h]"
    yield f"  {LANE} has a fourth of the terms of columns g + {ROWS // HALVES} * h"
    yield from of_sums(sizes)


def of_codes(sizes: CodedSizes, bits: int, held: str) -> Iterator[str]:
    """Yield where codes are in memory, and in registers, which hold tiles as ``held`` says."""
    q = sizes.product.codes.name
    matrices = f"[{sizes.product.codes.shape[0]} matrices]" if sizes.product.matrix else ""
    yield (
        f"{q} in memory: {matrices}[{sizes.deep} of {DEPTH} of the depth]"
        f"[{sizes.tiles} of {ROWS} columns][{tile_bytes(bits)} bytes]"
    )
    yield f"{q} in registers: w{held}[{bits} words]"
    yield f"  {LANE} has columns g + {ROWS // HALVES} * h, depth 8 * step + 2 * t and the next:"
    for step, halves in enumerate(slots(bits)):
        places = ", ".join(f"h = {half} in {_place(slot)}" for half, slot in enumerate(halves))
        yield f"    step {step}: {places}"


def of_sums(sizes: CodedSizes) -> Iterator[str]:
    """Yield where sums of warps are, and what a block and a thread take."""
    yield (
        f"sums in shared memory: float[{sizes.values['warp_depth']} warps][{sizes.rows} rows]"
        f"[{sizes.columns} columns]"
    )
    yield f"shared memory: {sizes.shared_bytes} bytes; registers: about {sizes.registers}"


def _place(slot: Slot) -> str:
    """Say where both codes of a pair are."""
    return " and ".join(f"w{p.word} bits {p.place} and {p.place + 16} on ({p.bits})" for p in slot)
