"""What the C of blocked and of thin contractions has in common."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cpu.abi import open_extent
from tilewright.spaces.cpu.tiles.dot_panel import DotPanel
from tilewright.spaces.cpu.tiles.dot_tile import DotTile
from tilewright.spaces.cpu.tiles.epilogue import operand_name
from tilewright.spaces.cpu.tiles.register_tile import RegisterTile
from tilewright.spaces.cpu.tiles.steps import PAIR, Stream
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.product import Product

Tile = RegisterTile | DotTile | DotPanel
_FIRST = Index()


def tile_extents(total: int, tile: int) -> list[int]:
    """The distinct extents of tiles along an axis."""
    rest = total % tile
    return [tile] * (total >= tile) + [rest] * (rest > 0)


def tile_heights(rows: int, tile: int, is_open: bool) -> list[int]:
    """The numbers of rows that a tile may have, of so many rows, or of as many as a call gives."""
    return [tile, *range(1, tile)] if is_open else tile_extents(rows, tile)


def open_rows(product: Product) -> str:
    """The C declaration of ``rows_given``, the rows of a call, in a function of workers."""
    return f"const long rows_given = {open_extent(product.workload.operands)};"


def tile_choice(
    name: str,
    tiles: Sequence[tuple[Tile, str]],
    whole: tuple[int, int],
    full: tuple[int, int],
    further: str = "",
) -> list[str]:
    """C function ``name(a, b, s, rows, columns, depth, accumulate, further...)``: calls the
    micro-kernel for what is left of a ``full`` tile (rows, columns) of the ``whole``. With each
    micro-kernel comes the text of its arguments after those that all have. Of several lower ones,
    that which is high enough is called: they come in the order of their rows."""
    chosen = []
    heights = {tile.rows for tile, _ in tiles}
    for tile, arguments in tiles:
        higher = min((height for height in heights if height > tile.rows), default=full[0])
        tests = [f"rows < {higher}"] * (tile.rows < full[0] < whole[0])
        tests += [f"columns < {full[1]}"] * (tile.columns < full[1] < whole[1])
        call = f"{tile.name}(a, b, s, depth, accumulate{arguments});"
        chosen.append((len(tests), f"if ({' && '.join(tests)}) {call}" if tests else call))
    chosen.sort(key=lambda choice: -choice[0])
    a, b = C_TYPES[tiles[0][0].left_dtype], C_TYPES[tiles[0][0].right_dtype]
    return [
        f"static inline void {name}(",
        f"    const {a} *a, const {b} *b, float *s,",
        f"    long rows, long columns, long depth, int accumulate{further}) {{",
        "  " + "\n  else ".join(text for _, text in chosen),
        "}",
    ]


def pointers(product: Product, left: Stream, right: Stream, number: Index = _FIRST) -> list[str]:
    """C variables for the buffers of ``call``, as :func:`pointer` names them: where product
    ``number`` of a batch has its part of them."""
    lines = []
    streams = {product.left.name: left, product.right.name: right}
    for i, operand in enumerate(product.numbered):
        stream = streams.get(operand.name)
        c_type = stream.c_type if stream else C_TYPES[operand.dtype]
        constant = "" if operand is product.output else "const "
        start = product.start(operand, number) // (2 if stream and stream.dtype == PAIR else 1)
        place = f"call->buffers[{i}]"
        if start.value != 0:
            place = f"({constant}{c_type} *){place} + {start.text}"
        lines.append(f"{constant}{c_type} *{pointer(product, operand)} = {place};")
    return lines


def pointer(product: Product, operand: Array) -> str:
    """The C variable that points to ``operand``."""
    own = {"l": product.left, "r": product.right, "c": product.output}
    return next((name for name, o in own.items() if o is operand), operand_name(operand.name))
