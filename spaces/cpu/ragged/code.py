"""The C of kernels over ranges: workers share rows by their entries, or share the entries
themselves.

The starts of all rows are given as pointers, or are found in a sorted table first. If entries are
shared, a row at the end of a worker's share is in parts: each worker stores the partial results of
its first and its last row, and one worker joins these (merge-path, as in Merrill and Garland,
"Merge-based parallel sparse matrix-vector multiplication", SC 2016).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import total, variable
from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import (
    ARRAY_TYPES,
    PAGE,
    buffer_variables,
    entry_function,
    worker_function,
)
from tilewright.spaces.cpu.ragged.row import RowCode, Tuning, state_size
from tilewright.spaces.derivation.ragged.view import RaggedView
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import C
from tilewright.spaces.workloads.array import Array

PASSED = 16
"""Entries that are skipped at a time while they belong to one row."""
START_BYTES = 8
"""Bytes of a row's start that is found in a table, an int64."""


def _turned(array: Array) -> str:
    """Return the name of a turned array in the workspace, which no step has."""
    return f"{array.name} turned"


@dataclass(frozen=True)
class RaggedCode:
    """The kernel called ``entry``; ``operands`` are its arguments in order. If it ``splits`` rows,
    workers have equal numbers of entries. Arrays that are ``turned`` are copied into their order
    first, or out of it last."""

    view: RaggedView
    operands: Sequence[Array]
    tuning: Tuning
    workers: int
    splits: bool
    entry: str
    turned: Sequence[Array] = ()

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        passes: dict[str, int] = {}
        lines: list[str] = []
        inputs, outputs = (
            [array for array in self.turned if (array.name in self._written) == written]
            for written in (False, True)
        )
        if inputs:
            lines += self._function("turn", [line for a in inputs for line in self._turn(a)])
            passes[f"{self.entry}_turn"] = self.workers
        if self._finds_starts:
            steps = {"clear": self._cleared, "ends": self._ended, "starts": self._begun}
            for name, body in steps.items():
                lines += self._function(name, body())
                passes[f"{self.entry}_{name}"] = self.workers if name == "ends" else 1
        lines += self._row_function()
        lines += self._function("rows", self._rows())
        passes[f"{self.entry}_rows"] = self.workers
        if self.splits:
            lines += self._function("merge", self._merge())
            passes[f"{self.entry}_merge"] = 1
        if outputs:
            lines += self._function("give", [line for a in outputs for line in self._turn(a)])
            passes[f"{self.entry}_give"] = self.workers
        return "\n".join([*lines, *entry_function(self.entry, passes)]) + "\n"

    @property
    def _finds_starts(self) -> bool:
        """True if the kernel must find where rows begin."""
        return self.view.has_rows and not self.view.range.pointers

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the starts, values of entries, results of rows, parts of rows, and turned
        arrays."""
        return self._layout["end"]

    # -- memory ----------------------------------------------------------------------------------

    @cached_property
    def _layout(self) -> Mapping[str, int]:
        """The byte offset of each array in the workspace, and of its end."""
        end, found = 0, dict[str, int]()
        element = dtype(self.tuning.element).bytes
        if self._finds_starts:
            found["starts"] = end
            end += round_up(START_BYTES * (self.view.rows + 1), PAGE)
        for step in self.view.steps:
            if step.along:
                found[step.name] = end
                end += round_up(element * self.view.entries * self.view.elements(step), PAGE)
            elif step.name in self.view.kept_steps:
                found[step.name] = end
                end += self.workers * self._own_bytes(step.name)
        if self.splits:
            found["parts"] = end
            end += 2 * self.workers * self._part * element
        for array in self.turned:
            found[_turned(array)] = end
            end += round_up(array.span_bytes, PAGE)
        return {**found, "end": end}

    @cached_property
    def _written(self) -> frozenset[str]:
        return frozenset(output.output.name for output in self.view.outputs)

    def _own_bytes(self, name: str) -> int:
        """Return the bytes that one worker needs for the values that a step stores for a row."""
        step = self.view.step[name]
        return round_up(dtype(self.tuning.element).bytes * self.view.elements(step), PAGE)

    @property
    def _part(self) -> int:
        """The elements of the partial result of a row."""
        step = self.view.splittable
        assert step is not None
        return state_size(self.view, step, self.tuning.lanes)

    @cached_property
    def _arrays(self) -> Mapping[str, str]:
        return {array.name: f"x{number}" for number, array in enumerate(self.operands)}

    @cached_property
    def _left(self) -> Mapping[str, str]:
        names = (step.name for step in self.view.steps if step.name in self._layout)
        return {name: f"r{number}" for number, name in enumerate(names)}

    @cached_property
    def _row(self) -> RowCode:
        return RowCode(self.view, self.tuning, self._arrays, self._left, self.splits)

    @property
    def _buffers(self) -> list[str]:
        """The declarations of pointers to all arrays, and to those in the workspace."""
        lines = buffer_variables(self.operands, self._arrays, self._written, "restrict ")
        for array in self.turned:
            number = [operand.name for operand in self.operands].index(array.name)
            lines[number] = self._turned_pointer(array, self._arrays[array.name])
        kind = ARRAY_TYPES[self.tuning.element]
        for name, left in self._left.items():
            own = "" if self.view.step[name].along else f" + worker * {self._own_bytes(name)}L"
            place = f"(char *)call->workspace + {self._layout[name]}L{own}"
            lines.append(f"{kind} *restrict {left} = (void *)({place});")
        if self.splits:
            place = f"(char *)call->workspace + {self._layout['parts']}L"
            lines.append(f"{kind} *restrict parts = (void *)({place});")
        return lines

    @property
    def _row_of(self) -> str:
        """The name of the C function that finds the row of an entry."""
        table = self.view.program.operand[self.view.range.table]
        return f"tw_row_of_{table.dtype if self.view.range.pointers else 'int64'}"

    # -- functions -------------------------------------------------------------------------------

    def _function(self, name: str, body: Sequence[str]) -> list[str]:
        return worker_function(f"{self.entry}_{name}", body)

    def _turned_pointer(self, array: Array, variable: str) -> str:
        kind, place = ARRAY_TYPES[array.dtype], self._layout[_turned(array)]
        return f"{kind} *restrict {variable} = (void *)((char *)call->workspace + {place}L);"

    def _turn(self, array: Array) -> list[str]:
        """Write the loops that copy a worker's share of an array: of an operand into the order in
        which it is turned, of an output out of it. The order of what is written is that of the
        loops."""
        number = [operand.name for operand in self.operands].index(array.name)
        given, output = self.operands[number], array.name in self._written
        constant, kind = "" if output else "const ", ARRAY_TYPES[array.dtype]
        order = given.order if output else array.order
        axes = {d: variable(f"i{d}", extent) for d, extent in enumerate(array.shape)}
        turned, plain = (
            total((axes[d], step) for d, step in enumerate(a.strides)).text for a in (array, given)
        )
        copy = (
            f"given[{plain}] = turned[{turned}];"
            if output
            else f"turned[{turned}] = given[{plain}];"
        )
        first, *rest = order
        lines = [copy]
        for dimension in reversed(rest):
            lines = C.loop(f"i{dimension}", array.shape[dimension], lines)
        extent = array.shape[first]
        return C.block(
            f"{constant}{kind} *restrict given = call->buffers[{number}];",
            self._turned_pointer(array, "turned"),
            f"const long first = {extent}L * worker / {self.workers};",
            f"const long last = {extent}L * (worker + 1) / {self.workers};",
            *C.loop(f"i{first}", "last", lines, first="first"),
        )

    def _cleared(self) -> list[str]:
        """Write the loop that clears the ends of all rows."""
        return [self._starts_found, f"for (long r = 0; r <= {self.view.rows}; r++) starts[r] = 0;"]

    def _ended(self) -> list[str]:
        """Write the loop that stores the end of each row, found at its last entry.

        In a long row, all of whose entries are equal, most entries are skipped.
        """
        table = self.view.program.operand[self.view.range.table]
        source, rows, entries = self._arrays[table.name], self.view.rows, self.view.entries
        kind = ARRAY_TYPES[table.dtype]
        number = [array.name for array in self.operands].index(table.name)
        return [
            f"const {kind} *restrict {source} = call->buffers[{number}];",
            self._starts_found,
            f"const long first = {entries}L * worker / {self.workers};",
            f"const long last = {entries}L * (worker + 1) / {self.workers};",
            "for (long e = first; e < last; e++) {",
            f"  const long row = tw_within({source}[e], -1, {rows - 1});",
            f"  while (e + {PASSED} < last && {source}[e + {PASSED}] == {source}[e])",
            f"    e += {PASSED};",
            f"  if (e == {entries - 1} || {source}[e] != {source}[e + 1])",
            "    starts[row + 1] = e + 1;",
            "}",
        ]

    def _begun(self) -> list[str]:
        """Write the loop that gives rows without entries the end of the row before."""
        return [
            self._starts_found,
            "long last = 0;",
            f"for (long r = 0; r <= {self.view.rows}; r++) {{",
            "  last = starts[r] > last ? starts[r] : last;",
            "  starts[r] = last;",
            "}",
        ]

    @property
    def _starts_found(self) -> str:
        place = f"(char *)call->workspace + {self._layout['starts']}L"
        return f"long *restrict starts = (void *)({place});"

    def _row_function(self) -> list[str]:
        """Return the C function of one row, for its entries from ``begin`` to before ``end``."""
        kind = ARRAY_TYPES[self.tuning.element]
        row = self._row.axis(self.view.range.row) if self.view.has_rows else "row"
        part = f", {kind} *part" if self.splits else ""
        return [
            f"static inline void {self.entry}_row(",
            f"    const tw_call *call, int worker, long {row}, long begin, long end{part}) {{",
            *indented([*self._buffers, *self._row.body()]),
            "}",
        ]

    def _rows(self) -> list[str]:
        """Write the loop over a worker's rows: those that begin among its entries, and for the last
        worker all that remain.

        If rows are split, the worker also has a part of the row before, and only a part of its last
        row.
        """
        rows, entries, workers = self.view.rows, self.view.entries, self.workers
        if not self.view.has_rows:
            return [
                f"const long low = {entries}L * worker / {workers};",
                f"const long high = {entries}L * (worker + 1) / {workers};",
                f"{self.entry}_row(call, worker, 0, low, high);",
            ]
        lines = [
            self._starts_source,
            f"const long low = {entries}L * worker / {workers};",
            f"const long high = {entries}L * (worker + 1) / {workers};",
            f"const long first = worker ? {self._row_of}(starts, {rows}, low) : 0;",
            f"const long last = worker < {workers - 1} ? "
            f"{self._row_of}(starts, {rows}, high) : {rows};",
        ]
        call = f"{self.entry}_row(call, worker, r, begin, "
        if not self.splits:
            return [*lines, *C.loop("r", "last", [*self._ends("r"), f"{call}end);"], first="first")]
        own = f"parts + 2 * worker * {self._part}L"
        begun = f"{self.entry}_row(call, worker, r, low, tw_least(end, high), {own});"
        before = C.when("end > low", [begun])
        each = [
            f"if (end <= high) {call}end, (void *)0);",
            f"else {call}high, {own} + {self._part}L);",
        ]
        return [
            *lines,
            *self._parts_variable,
            *C.when("first > 0", ["const long r = first - 1;", *self._ends("r"), *before]),
            *C.loop("r", "last", [*self._ends("r"), *each], first="first"),
        ]

    def _ends(self, row: str) -> list[str]:
        """Declare the begin and the end of a row, clamped so that no table leads outside of the
        arrays."""
        entries = self.view.entries
        return [
            f"const long begin = tw_within(starts[{row}], 0, {entries});",
            f"const long end = tw_within(starts[{row} + 1], begin, {entries});",
        ]

    @property
    def _starts_source(self) -> str:
        if not self.view.range.pointers:
            place = f"(char *)call->workspace + {self._layout['starts']}L"
            return f"const long *const starts = (const void *)({place});"
        table = self.view.range.table
        number = [array.name for array in self.operands].index(table)
        kind = ARRAY_TYPES[self.view.program.operand[table].dtype]
        return f"const {kind} *const starts = call->buffers[{number}];"

    @property
    def _parts_variable(self) -> list[str]:
        kind = ARRAY_TYPES[self.tuning.element]
        place = f"(char *)call->workspace + {self._layout['parts']}L"
        return [f"{kind} *const parts = (void *)({place});"]

    def _merge(self) -> list[str]:
        """Write the loop that joins the parts of rows that several workers have, and finishes these
        rows."""
        rows, entries, workers, part = self.view.rows, self.view.entries, self.workers, self._part
        row = self._row.axis(self.view.range.row)
        return [
            *self._buffers,
            self._starts_source,
            f"for (int w = 0; w < {workers - 1}; w++) {{",
            f"  const long low = {entries}L * w / {workers};",
            f"  const long high = {entries}L * (w + 1) / {workers};",
            f"  const long {row} = {self._row_of}(starts, {rows}, high) - 1;",
            f"  if ({row} < (w ? {self._row_of}(starts, {rows}, low) : 0)) continue;",
            *indented(self._ends(row)),
            "  if (end <= high) continue;",
            f"  {ARRAY_TYPES[self.tuning.element]} *state = parts + (2 * w + 1) * {part}L;",
            f"  for (int v = w + 1; v < {workers} && {entries}L * v / {workers} < end; v++) {{",
            *indented(indented(self._row.joined_parts("state", f"(parts + 2 * v * {part}L)"))),
            "  }",
            *indented(self._row.finish("state")),
            "}",
        ]
