"""The end of a tile: sums in, epilogue applied vector by vector, output out."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.vectors.vector_code import VectorCode, loaded
from tilewright.spaces.epilogue.expression import SUM
from tilewright.spaces.language.text import Written
from tilewright.spaces.workloads.contraction import Operand
from tilewright.spaces.workloads.product import Product


def finish_function(
    name: str, product: Product, rows: int, vectors: int, lanes: int, sums: Layout
) -> list[str]:
    """C function ``name(s, c, operands..., rows, columns)`` for tiles of up to ``rows`` rows of
    ``vectors`` vectors; ``s`` is laid out as ``sums`` and may be ``c``.

    A loop over vectors in L1, not over accumulators in registers: one copy of the epilogue's code
    serves all tile shapes, at the price of one load and one store an element.
    """
    workload = product.workload
    arguments = [
        f"const {C_TYPES[operand.dtype]} *{operand_name(operand.name)}"
        for operand in workload.epilogue_inputs
    ]
    output = product.output

    def body(indices: Sequence[Index]) -> list[str]:
        i, j = indices
        place = product.layout(output).emit(i, j)
        return [
            f"const long left = columns - {j};",
            f"const vf x = tw_load_most_float32(s + {sums.emit(i, j)}, left);",
            f"tw_store_most_{output.dtype}(c + {place}, {_value(product, i, j)}, left);",
        ]

    tile = repeat(rows, vectors) * spatial(1, lanes)
    parameters = [
        "const float *s",
        f"{C_TYPES[output.dtype]} *c",
        *arguments,
        "long rows",
        "long columns",
    ]
    return [
        f"static __attribute__((noinline)) void {name}({', '.join(parameters)}) {{",
        *(f"  {line}" for line in tile.emit(0, body, extents=("rows", "columns"))),
        "}",
    ]


def operand_name(name: str) -> str:
    """The C name of an epilogue operand; the prefix keeps clear of C's words and of our names."""
    return f"e_{name}"


def _value(product: Product, i: Index, j: Index) -> str:
    """The epilogue of ``x`` as a vector expression."""
    workload = product.workload
    if workload.epilogue is None:
        return "x"
    loads = {o.name: Written(_load(product, o, i, j)) for o in workload.epilogue_inputs}
    return workload.epilogue.fold(VectorCode(), {SUM: Written("x"), **loads}).text


def _load(product: Product, operand: Operand, i: Index, j: Index) -> str:
    """The elements of an operand beside a vector of sums."""
    place = f"{operand_name(operand.name)} + {product.layout(operand).emit(i, j)}"
    return loaded(operand.dtype, place, operand.stride(product.column), "left")
