"""Parts of C that kernels of blocked and of thin products share."""

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
    """Return the distinct extents of tiles along an axis: that of full ones, and that of the last
    one."""
    rest = total % tile
    return [tile] * (total >= tile) + [rest] * (rest > 0)


def tile_heights(rows: int, tile: int, is_open: bool) -> list[int]:
    """Return the numbers of rows that a tile may have, if a product has ``rows`` rows, or, for an
    open one, as many as a call gives."""
    return [tile, *range(1, tile)] if is_open else tile_extents(rows, tile)


def open_rows(product: Product) -> str:
    """Return the C declaration of ``rows_given``, the number of rows of a call, in a worker's
    function."""
    return f"const long rows_given = {open_extent(product.matmul.operands)};"


def batches_given(product: Product, is_open: bool) -> int | str:
    """Return the number of products of a batch, in a worker's function: if it ``is_open``, a call
    gives the extent of the slowest axis, up to the product's."""
    if not is_open:
        return product.batches
    each = product.batches // product.matmul.extents[product.batch[0]]
    return f"({open_extent(product.matmul.operands)} * {each})"


def tile_choice(
    name: str,
    tiles: Sequence[tuple[Tile, str]],
    whole: tuple[int, int],
    full: tuple[int, int],
    further: str = "",
) -> list[str]:
    """Return the C function ``name(a, b, s, rows, columns, depth, accumulate, further...)``, which
    calls the micro-kernel for what remains of a ``full`` tile (rows, columns).

    ``whole`` is the extent (rows, columns) that tiles are cut from. Each micro-kernel comes with
    the text of its arguments behind those that all have. Lower micro-kernels come in ascending
    order of rows: the first one that is high enough is called.
    """
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
    """Declare C variables for the buffers of ``call``, named by :func:`pointer`, at the part of
    product ``number`` of a batch."""
    lines = []
    streams = {product.left.name: left, product.right.name: right}
    places = [array.name for array in (*product.inputs, *product.outputs)]
    for operand in product.numbered:
        stream = streams.get(operand.name)
        c_type = stream.c_type if stream else C_TYPES[operand.dtype]
        written = any(operand is output for output in product.matmul.outputs)
        constant = "" if written else "const "
        start = product.start(operand, number) // (2 if stream and stream.dtype == PAIR else 1)
        place = f"call->buffers[{places.index(operand.name)}]"
        if start.value != 0:
            place = f"({constant}{c_type} *){place} + {start.text}"
        lines.append(f"{constant}{c_type} *{pointer(product, operand)} = {place};")
    return lines


def pointer(product: Product, operand: Array) -> str:
    """Return the name of the C variable that points to ``operand``."""
    own = {"l": product.left, "r": product.right, "c": product.output}
    return next((name for name, o in own.items() if o is operand), operand_name(operand.name))
