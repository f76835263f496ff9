"""The C of reductions along rows: pass after pass over a row, and then its outputs.

Workers share items: single rows, or, if lanes are rows, as many rows as are in flight. As task
mappings:

    spatial(workers) * repeat(items of a worker)     and within a row
    repeat(spans but the last) * (repeat(tiles) * spatial(tile's columns), then the rest)
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import (
    ARRAY_TYPES,
    LINE_BYTES,
    buffer_variables,
    entry_function,
    open_extent,
    open_share,
    worker_function,
)
from tilewright.spaces.cpu.rows.access import RowAccess
from tilewright.spaces.cpu.rows.column_sums import ColumnSums
from tilewright.spaces.cpu.rows.columns import Walk
from tilewright.spaces.cpu.rows.held import Held
from tilewright.spaces.cpu.rows.row import RowBody
from tilewright.spaces.derivation.rows.column_sums import SummedRows
from tilewright.spaces.derivation.rows.passes import Pass
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class RowsCode:
    """The kernel called ``entry``.

    ``operands`` are its arguments in order. ``unroll`` vectors are in flight, of one row, or, if
    ``lanes_are_rows``, with a row in each lane. The walk number ``fetching`` along a row also
    prefetches what the next row reads (:class:`RowBody`). If ``rows_each`` is given, calls pass the
    extent of an open axis, with so many rows at each of its points.
    """

    rows: SummedRows
    operands: Sequence[Array]
    passes: tuple[Pass, ...]
    held: Held | None
    unroll: int
    streaming: bool
    fetching: int | None
    workers: int
    lanes: int
    element: str
    lanes_are_rows: bool
    entry: str
    rows_each: int | None = None

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        passes, joined = {f"{self.entry}_work": self.workers}, list[str]()
        if self.rows.sums:
            name = f"{self.entry}_join"
            passes[name] = 1
            joined = self._sums.joined(name, self.operands, self._names)
        entry = entry_function(self.entry, passes)
        return "\n".join([*self._work(), *joined, *entry]) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the column sums and scratch rows of all workers."""
        elements = self._sums.elements + self._held_elements
        return dtype(self.element).bytes * self.workers * elements

    @cached_property
    def _sums(self) -> ColumnSums:
        return ColumnSums(self.rows, self.workers, self.lanes, self.element)

    @property
    def _held_elements(self) -> int:
        if self.held is None or self.held.place:
            return 0
        return round_up(self.rows.column_count + self.lanes, LINE_BYTES)

    @cached_property
    def _items(self) -> tuple[int, ...]:
        """The number of items along each span of rows."""
        *outer, last = (span.extent for span in self.rows.rows)
        if not self.lanes_are_rows:
            return (*outer, last)
        return (*outer, last // self._width + (last % self._width > 0))

    @property
    def _width(self) -> int:
        """Rows of an item if lanes are rows."""
        return self.unroll * self.lanes

    def _work(self) -> list[str]:
        every = prod(self._items)
        worker = index("worker", self.workers)
        share = repeat(ceil_div(every, self.workers))
        if self.rows_each:
            items = f"{open_extent(self.operands)} * {self.rows_each}"
            lines = open_share(items, self.workers)
            lines += share.emit(0, self._item, extents=("end",), base=("begin",), prefix="r")
        else:
            lines = (spatial(self.workers) * share).emit(
                worker, self._item, extents=(every,), prefix="r"
            )
        flush = ["tw_flush();"] * self.streaming
        lines = [*self._buffers(), *lines, *self._ended(), *flush]
        return worker_function(f"{self.entry}_work", lines)

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {operand.name: f"b{i}" for i, operand in enumerate(self.operands)}

    def _buffers(self) -> list[str]:
        written = {output.array.name for output in self.rows.outputs}
        lines = buffer_variables(self.operands, self._names, written)
        c_type = ARRAY_TYPES[self.element]
        if self.rows.sums:
            start = index("worker", self.workers) * self._sums.elements
            lines += self._sums.begun(f"({c_type} *)call->workspace + {start}")
        if self._held_elements:
            before = self.workers * self._sums.elements
            start = index("worker", self.workers) * self._held_elements + before
            lines.append(f"{c_type} *held = ({c_type} *)call->workspace + {start};")
        return lines

    def _ended(self) -> list[str]:
        return self._sums.ended() if self.rows.sums else []

    def _item(self, at: Sequence[Index]) -> list[str]:
        row = index("row", prod(self._items))
        body = self._rows_of_lanes if self.lanes_are_rows else self._row
        return [f"const long row = {at[0]};", *spatial(*self._items).emit(row, body)]

    def _row(self, at: Sequence[Index]) -> list[str]:
        extents = tuple(span.extent for span in self.rows.columns)
        return self._body(at, Walk(extents, self.lanes, self.unroll))

    def _rows_of_lanes(self, at: Sequence[Index]) -> list[str]:
        """Write all rows of an item at once; the rows of the last item, which may have fewer, by
        vectors."""
        *outer, item = at
        last = self.rows.rows[-1].extent
        walk = Walk(tuple(span.extent for span in self.rows.columns), 1, 1)
        whole, rest = divmod(last, self._width)
        lines = self._body((*outer, item * self._width), walk, self.unroll) if whole else []
        if not rest:
            return lines
        vectors = repeat(ceil_div(rest, self.lanes)) * spatial(self.lanes)
        others = vectors.emit(
            0,
            lambda v: self._body((*outer, *v), walk, 1, f"{last} - {v[0]}"),
            base=(whole * self._width,),
            prefix="v",
        )
        if not whole:
            return others
        return [f"if ({item} < {whole}) {{", *lines, "} else {", *others, "}"]

    def _body(
        self, at: Sequence[Index], walk: Walk, vectors: int = 1, left: str | None = None
    ) -> list[str]:
        lines: list[str] = []
        names = {**self._names, **self._sums.names}
        access = RowAccess(
            self.rows, names, at, lines, self.lanes, self.element, self.lanes_are_rows
        )
        body = RowBody(access, walk, self.held, self.streaming, self.fetching, lines, vectors, left)
        body.write(self.passes)
        return [*lines, *(self._sums.row_ends() if self.rows.sums else [])]
