"""The end of a tile: what is fused is applied to the sums, vector by vector, and stored."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.vectors.vector_code import VectorCode, loaded
from tilewright.spaces.cpu.windows.nest import OUTPUT, Key, Nest, Turns, written
from tilewright.spaces.derivation.products.view import Finished, PlacedProduct
from tilewright.spaces.language.text import Written
from tilewright.spaces.language.tree import Expression, Read


def finish_function(
    name: str,
    product: PlacedProduct,
    nest: Nest,
    tile: tuple[int, int],
    lanes: int,
    sums: Layout,
    own_sums: bool,
) -> list[str]:
    """Return the C function ``name(s, outputs..., reads..., rows, columns)`` that finishes a tile
    of sums.

    A tile has up to ``tile`` (rows, vectors). Sums are at ``s`` in the layout ``sums``, which is in
    the first output unless they have memory of their ``own``.
    """
    outputs = list(enumerate(written(product).items()))
    operands = {read: product.program.operand[read.name] for read in product.places}
    arguments = [
        *(f"{C_TYPES[each.output.dtype]} *{output_name(n)}" for n, (_, each) in outputs),
        *(
            f"const {C_TYPES[operand.dtype]} *{read_name(number)}"
            for number, operand in enumerate(operands.values())
        ),
    ]

    def place(key: Key, i: Index, j: Index) -> str:
        return (i * nest.row.strides[key] + j * nest.column.strides[key]).text

    def store(number: int, key: Key, each: Finished, i: Index, j: Index) -> str:
        value = fused_value(product, each.value, nest.column, lambda read: place(read, i, j))
        at = f"{output_name(number)} + {place(key, i, j)}"
        if nest.column.extent > 1 and (step := nest.column.strides[key]) != 1:
            return f"tw_spread_{each.output.dtype}({at}, {step}, {value}, left);"
        return f"tw_store_most_{each.output.dtype}({at}, {value}, left);"

    def body(indices: Sequence[Index]) -> list[str]:
        i, j = indices
        return [
            f"const long left = columns - {j};",
            f"const vf x = tw_load_most_float32(s + {sums.emit(i, j)}, left);",
            *(
                store(number, key, each, i, j)
                for number, (key, each) in outputs
                if own_sums or key != OUTPUT or product.fused
            ),
        ]

    grid = repeat(*tile) * spatial(1, lanes)
    return [
        f"static __attribute__((noinline)) void {name}(",
        f"    {', '.join(['const float *s', *arguments, 'long rows', 'long columns'])}) {{",
        *(f"  {line}" for line in grid.emit(0, body, extents=("rows", "columns"))),
        "}",
    ]


def fused_value(
    product: PlacedProduct, value: Expression, column: Turns, place: Callable[[Read], str]
) -> str:
    """Return the C of a finished ``value`` for a vector ``x`` of sums, ``left`` columns of which
    exist.

    The operands that are read beside the product lie ``place`` elements from their pointers.
    """

    def load(number: int, read: Read) -> str:
        dtype = product.program.operand[read.name].dtype
        at = f"{read_name(number)} + {place(read)}"
        return loaded(dtype, at, column.strides[read], "left")

    known: dict[Expression, Written] = {product.sum: Written("x")}
    known |= {read: Written(load(n, read)) for n, read in enumerate(product.places)}
    return value.fold(VectorCode(), known.get).text


def output_name(number: int) -> str:
    """Return the C name of the ``number``-th output."""
    return f"c{number}" if number else "c"


def read_name(number: int) -> str:
    """Return the C name of the ``number``-th operand that is read beside the product."""
    return f"e{number}"
