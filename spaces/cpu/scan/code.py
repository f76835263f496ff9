"""The C of scans: workers share rows, or, where rows are few, the columns of each.

Workers that share columns walk twice: once for the sum of each worker's own columns, and once with
the sums of all workers before it as a start (Blelloch, Prefix sums and their applications, 1990).
As task mappings:

    spatial(workers) * repeat(items of a worker)     or     repeat(items) * spatial(workers)

An item is a row, or as many rows as some vectors have lanes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import buffer_variables, entry_function, worker_function
from tilewright.spaces.cpu.rows.access import RowAccess
from tilewright.spaces.cpu.scan.row import ScanRow, carried, state_names
from tilewright.spaces.cpu.vectors.long_sums import BLOCK
from tilewright.spaces.cpu.vectors.reducers import identity
from tilewright.spaces.derivation.scans.view import Scan
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import C
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class ScanCode:
    """The kernel called ``entry``; ``operands`` are its arguments in order.

    ``vectors`` are summed up at once: of a row, or, if ``lanes_are_rows``, side by side. If it
    ``splits`` rows, workers share the columns of each.
    """

    view: Scan
    operands: Sequence[Array]
    vectors: int
    streaming: bool
    workers: int
    lanes: int
    element: str
    lanes_are_rows: bool
    splits: bool
    entry: str

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        sums = self._function("sums", outputs=False) if self.splits else []
        rows = self._function("rows", outputs=True)
        names = ["sums", "rows"] if self.splits else ["rows"]
        entry = entry_function(self.entry, {f"{self.entry}_{n}": self.workers for n in names})
        return "\n".join([*sums, *rows, *entry]) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the sums of each worker's own columns."""
        vector = dtype(self.element).bytes * self.lanes
        return prod(self._items) * self.workers * self._states * vector if self.splits else 0

    @property
    def _states(self) -> int:
        """Vectors of the sums of an item."""
        return len(self.view.running) * (self.vectors if self.lanes_are_rows else 1)

    @cached_property
    def _items(self) -> tuple[int, ...]:
        """The number of items along each span of rows."""
        *outer, last = (span.extent for span in self.view.rows)
        each = self.vectors * self.lanes if self.lanes_are_rows else 1
        return (*outer, ceil_div(last, each))

    def _function(self, name: str, outputs: bool) -> list[str]:
        names = {operand.name: f"b{i}" for i, operand in enumerate(self.operands)}
        written = {output.array.name for output in self.view.outputs}
        lines = buffer_variables(self.operands, names, written)
        every, extent = prod(self._items), self.view.column_count

        def access(at: Sequence[Index], lines: list[str]) -> RowAccess:
            width, lanes_are_rows = self.lanes, self.lanes_are_rows
            return RowAccess(self.view, names, at, lines, width, self.element, lanes_are_rows)

        row = ScanRow(self.view, access, self.lanes, self.vectors, self.streaming)

        def item(at: Sequence[Index]) -> list[str]:
            number = index("item", every)
            body = spatial(*self._items).emit(number, lambda at: self._item(row, at, outputs))
            return [f"const long item = {at[0]};", *body]

        if self.splits:
            step = BLOCK if self.lanes_are_rows else self.vectors * self.lanes
            share = round_up(ceil_div(extent, self.workers), step)
            lines += ["vf *const sums = call->workspace;"]
            lines += [f"const long begin = tw_least({extent}, {share}L * worker);"]
            lines += [f"const long end = tw_least({extent}, begin + {share});"]
            lines += repeat(every).emit(0, item, prefix="n")
        else:
            lines += [f"const long begin = 0, end = {extent};"]
            tasks = spatial(self.workers) * repeat(ceil_div(every, self.workers))
            worker = index("worker", self.workers)
            lines += tasks.emit(worker, item, extents=(every,), prefix="n")
        flush = ["tw_flush();"] * (self.streaming and outputs)
        return worker_function(f"{self.entry}_{name}", [*lines, *flush])

    def _item(self, row: ScanRow, at: Sequence[Index], outputs: bool) -> list[str]:
        running = list(enumerate(self.view.running))
        if not self.lanes_are_rows:
            names = [f"{name}{k}" for k, r in running for name in state_names(r)]
            walk = [*self._begun("", outputs), *row.along(at, outputs), *self._ended("", outputs)]
            return [f"vf {', '.join(names)};", *walk]
        *outer, item = at
        rows, each = self.view.rows[-1].extent, self.vectors * self.lanes
        each_vector = [(name, k) for k, r in running for name in (*state_names(r), "a")]
        names = [f"{name}{k}[{self.vectors}]" for name, k in each_vector]
        return [
            f"vf {', '.join(names)};",
            f"const long first = {item * each}, left = {rows} - first;",
            f"const long some = (left + {self.lanes - 1}) / {self.lanes};",
            f"const long count = tw_least({self.vectors}, some);",
            *C.loop("v", "count", self._begun("[v]", outputs)),
            *row.across(outer, "first", outputs),
            *(C.loop("v", "count", ended) if (ended := self._ended("[v]", outputs)) else []),
        ]

    def _begun(self, lane: str, outputs: bool) -> list[str]:
        """Return the lines that set the states so far: to those of nothing, or of workers
        before."""
        lines: list[str] = []
        for k, r in enumerate(self.view.running):
            states = [f"{name}{k}{lane}" for name in state_names(r)]
            lines.append(f"{' = '.join(states)} = {identity(r.reducer)};")
            if self.splits and outputs:
                add = carried(r, f"{k}{lane}", f"sums[{self._place('w', k, lane)}]")
                ends = ("worker + 1", self.workers) if self.view.backwards else (0, "worker")
                lines += C.loop("w", ends[1], [add], first=ends[0])
        return lines

    def _ended(self, lane: str, outputs: bool) -> list[str]:
        """Return the lines that store the sums of a worker's own columns, for the next walk."""
        if outputs or not self.splits:
            return []
        numbers = range(len(self.view.running))
        return [f"sums[{self._place('worker', k, lane)}] = c{k}{lane};" for k in numbers]

    def _place(self, worker: str, k: int, lane: str) -> str:
        """Return the place of a worker's sum in the workspace."""
        state = f"{k * self.vectors} + v" if lane else f"{k}"
        return f"(item * {self.workers} + {worker}) * {self._states} + {state}"
