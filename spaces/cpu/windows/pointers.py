"""The C pointers to the arrays of a product of placed operands."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.cpu.windows.finish import output_name, read_name
from tilewright.spaces.cpu.windows.nest import (
    LEFT,
    PADDED,
    RIGHT,
    Key,
    Nest,
    Source,
    Windows,
    offset,
    written,
)
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class Pointers:
    """Writes pointers to ``arrays``, the buffers of the call in order, and to copies, which begin
    at the byte offsets ``copy_starts`` of the workspace. They point at row ``first_row`` of a
    product."""

    view: Windows
    nest: Nest
    arrays: Sequence[Array]
    copy_starts: Sequence[int]
    first_row: Index

    def lines(self, number: Index) -> list[str]:
        """Return the C declarations of ``l``, ``r`` and of one pointer for each output and for each
        array that is read beside the product. If the left operand is read in place, ``l`` points at
        its start, and ``padded`` is the offset in the padded copy."""
        view = self.view
        lines = [
            *self._left(number),
            self._source("r", RIGHT, view.right, number),
            *(
                self._array(output_name(n), each.output, key, number, "")
                for n, (key, each) in enumerate(written(view.product).items())
            ),
        ]
        for i, read in enumerate(view.product.places):
            operand = view.product.program.operand[read.name]
            lines.append(self._array(read_name(i), operand, read, number, "const "))
        return lines

    def _left(self, number: Index) -> list[str]:
        left = self.view.left
        if left.patched is None:
            return [self._source("l", LEFT, left, number)]
        pointer = self._buffer("l", left.factor.operand, "const ")
        return [f"{pointer};", f"const long padded = {self._start(PADDED, number)};"]

    def _source(self, name: str, key: Key, source: Source, number: Index) -> str:
        if source.padded is None:
            return self._array(name, source.factor.operand, key, number, "const ")
        c_type = C_TYPES[source.dtype]
        start = self.copy_starts[self.view.copies.index(source.padded)]
        base = f"(const {c_type} *)((char *)call->workspace + {start})"
        return f"const {c_type} *{name} = {base} + {self._start(key, number)};"

    def _array(self, name: str, array: Array, key: Key, number: Index, constant: str) -> str:
        return f"{self._buffer(name, array, constant)} + {self._start(key, number)};"

    def _buffer(self, name: str, array: Array, constant: str) -> str:
        place = [other.name for other in self.arrays].index(array.name)
        c_type = f"{constant}{C_TYPES[array.dtype]} *"
        return f"{c_type}{name} = ({c_type})call->buffers[{place}]"

    def _start(self, key: Key, number: Index) -> str:
        first = self.first_row * self.nest.row.strides[key]
        constant = self.view.places[key].constant
        return (offset(self.nest.products, number, key) + first + constant).text
