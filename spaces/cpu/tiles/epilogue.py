"""The end of a tile: the epilogue is applied to sums, vector by vector, and stored."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.layout import Layout
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.vectors.vector_code import VectorCode, loaded
from tilewright.spaces.language.text import Written as Text
from tilewright.spaces.workloads.matmul import Operand
from tilewright.spaces.workloads.product import Product, Written


def finish_function(
    name: str,
    product: Product,
    rows: int,
    vectors: int,
    lanes: int,
    sums: Layout,
    own_sums: bool = True,
) -> list[str]:
    """Return the C function ``name(s, c, further..., operands..., rows, columns)`` that finishes a
    tile.

    A tile has up to ``rows`` rows of ``vectors`` vectors. Sums are at ``s`` in the layout ``sums``,
    and the output is at ``c``, which is the same memory unless they have their ``own``. The loop
    runs over vectors in L1 and not over accumulators in registers: one copy of the epilogue serves
    all tile shapes, at the price of one load and one store for each vector.
    """
    first, *further = product.written
    named = [("c", first), *((operand_name(each.array.name), each) for each in further)]
    unfinished = named if own_sums or first.is_fused else named[1:]
    arguments = [
        *(f"{C_TYPES[each.array.dtype]} *{pointer}" for pointer, each in named),
        *(
            f"const {C_TYPES[operand.dtype]} *{operand_name(operand.name)}"
            for operand in product.matmul.epilogue_inputs
        ),
    ]

    def body(indices: Sequence[Index]) -> list[str]:
        i, j = indices

        def store(pointer: str, written: Written) -> str:
            at = f"{pointer} + {product.layout(written.array).emit(i, j)}"
            return f"tw_store_most_{written.array.dtype}({at}, {_value(written, i, j)}, left);"

        return [
            f"const long left = columns - {j};",
            f"const vf x = tw_load_most_float32(s + {sums.emit(i, j)}, left);",
            *(store(*each) for each in unfinished),
        ]

    tile = repeat(rows, vectors) * spatial(1, lanes)
    parameters = ["const float *s", *arguments, "long rows", "long columns"]
    return [
        f"static __attribute__((noinline)) void {name}({', '.join(parameters)}) {{",
        *(f"  {line}" for line in tile.emit(0, body, extents=("rows", "columns"))),
        "}",
    ]


def operand_name(name: str) -> str:
    """Return the C name of an epilogue's operand; the prefix avoids words of C and names of
    ours."""
    return f"e_{name}"


def _value(written: Written, i: Index, j: Index) -> str:
    """Return what is written of ``x`` as a vector expression."""
    product = written.product
    loads = {o.name: Text(_load(product, o, i, j)) for o in product.matmul.epilogue_inputs}
    return written.value(VectorCode(), Text("x"), loads).text


def _load(product: Product, operand: Operand, i: Index, j: Index) -> str:
    """Return the elements of an operand that belong to a vector of sums."""
    place = f"{operand_name(operand.name)} + {product.layout(operand).emit(i, j)}"
    return loaded(operand.dtype, place, operand.stride(product.column), "left")
