"""The end of a tile: what is fused is applied to the sums, vector by vector, and stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.vectors.vector_code import VectorCode, loaded
from tilewright.spaces.cpu.windows.nest import OUTPUT, Nest, Turns
from tilewright.spaces.derivation.products.view import PlacedProduct
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import Expression, Read


def finish_function(
    name: str,
    product: PlacedProduct,
    nest: Nest,
    tile: tuple[int, int],
    lanes: int,
    sums: Layout,
) -> list[str]:
    """Return the C function ``name(s, c, reads..., rows, columns)`` that finishes a tile of sums.

    A tile has up to ``tile`` (rows, vectors). Sums are at ``s`` in the layout ``sums``, and the
    output is at ``c``, which may be the same memory.
    """
    output = product.output
    operands = {read: product.program.operand[read.name] for read in product.places}
    arguments = [
        f"const {C_TYPES[operand.dtype]} *{read_name(number)}"
        for number, operand in enumerate(operands.values())
    ]

    def place(key: Read | str, i: Index, j: Index) -> str:
        return (i * nest.row.strides[key] + j * nest.column.strides[key]).text

    def body(indices: Sequence[Index]) -> list[str]:
        i, j = indices
        value = fused_value(product, nest.column, lambda read: place(read, i, j))
        at = f"c + {place(OUTPUT, i, j)}"
        store = f"tw_store_most_{output.dtype}({at}, {value}, left);"
        if nest.column.extent > 1 and (step := nest.column.strides[OUTPUT]) != 1:
            store = f"tw_spread_{output.dtype}({at}, {step}, {value}, left);"
        return [
            f"const long left = columns - {j};",
            f"const vf x = tw_load_most_float32(s + {sums.emit(i, j)}, left);",
            store,
        ]

    grid = repeat(*tile) * spatial(1, lanes)
    parameters = ["const float *s", f"{C_TYPES[output.dtype]} *c", *arguments]
    return [
        f"static __attribute__((noinline)) void {name}(",
        f"    {', '.join([*parameters, 'long rows', 'long columns'])}) {{",
        *(f"  {line}" for line in grid.emit(0, body, extents=("rows", "columns"))),
        "}",
    ]


def fused_value(product: PlacedProduct, column: Turns, place: Callable[[Read], str]) -> str:
    """Return the C of the finished value of a vector ``x`` of sums, ``left`` columns of which
    exist.

    The operands that are read beside the product lie ``place`` elements from their pointers.
    """

    def load(number: int, read: Read) -> str:
        dtype = product.program.operand[read.name].dtype
        at = f"{read_name(number)} + {place(read)}"
        return loaded(dtype, at, column.strides[read], "left")

    known: dict[Expression, Written] = {product.sum: Written("x")}
    known |= {read: Written(load(n, read)) for n, read in enumerate(product.places)}
    return product.value.fold(VectorCode(), known.get).text


def read_name(number: int) -> str:
    """Return the C name of the ``number``-th operand that is read beside the product."""
    return f"e{number}"
