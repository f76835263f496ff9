"""The C of sums over all rows: each worker's own in its scratch memory, and their total.

Rows are added to the first of :data:`LEVELS` arrays. After :data:`BLOCK` rows it is added to the
next array and cleared, and so on. So no element takes more than :data:`BLOCK` additions before it
moves on, except in the last array: rounding errors grow slowly, as in pairwise summation.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.algebra.mapping_emit import indented
from tilewright.spaces.cpu.abi import ARRAY_TYPES, LINE_BYTES, buffer_variables
from tilewright.spaces.derivation.rows.column_sums import SummedRows
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.workloads.array import Array

LEVELS = 3
BLOCK = 64
"""The number of arrays, or rows, that are added to an array before it is added to the next one."""


@dataclass(frozen=True)
class ColumnSums:
    """The column sums of ``workers``, in vectors of ``lanes`` of the type ``element``."""

    rows: SummedRows
    workers: int
    lanes: int
    element: str

    @property
    def elements(self) -> int:
        """Elements of each worker's scratch memory."""
        return len(self.rows.sums) * LEVELS * self._run

    @property
    def names(self) -> Mapping[str, str]:
        """The C variable of the array that rows are added to, by the name of the sum."""
        return {output.name: f"sum{n}_0" for n, output in enumerate(self.rows.sums)}

    def begun(self, start: str) -> list[str]:
        """Return the lines that declare a worker's arrays, from the address ``start`` on, and clear
        them."""
        lines = [f"{self._type} *const sums = {start};"]
        lines.append(f"for (long c = 0; c < {self.elements}L; c++) sums[c] = 0;")
        arrays = [(n, level) for n, _ in enumerate(self.rows.sums) for level in range(LEVELS)]
        for place, (n, level) in enumerate(arrays):
            lines.append(f"{self._type} *sum{n}_{level} = sums + {place * self._run}L;")
        return [*lines, *(f"long added{level} = 0;" for level in range(LEVELS - 1))]

    def row_ends(self) -> list[str]:
        """Return the lines after each row: arrays that have taken a block are added to the next
        ones."""
        lines: list[str] = []
        for level in reversed(range(LEVELS - 1)):
            lines = [
                f"if (++added{level} == {BLOCK}) {{",
                f"  added{level} = 0;",
                *indented([*self._moved(level), *lines]),
                "}",
            ]
        return lines

    def ended(self) -> list[str]:
        """Return the lines after all rows, which add everything to the last arrays."""
        return [line for level in range(LEVELS - 1) for line in self._moved(level)]

    def joined(self, name: str, operands: Sequence[Array], buffers: Mapping[str, str]) -> list[str]:
        """Return the C function ``name`` that adds the sums of all workers and writes the
        outputs."""
        outputs = self.rows.sums
        lines = buffer_variables(operands, buffers, {output.name for output in outputs})
        lines.append(f"const {self._type} *sums = call->workspace;")
        for n, output in enumerate(outputs):
            place = f"sums + worker * {self.elements}L + {(n * LEVELS + LEVELS - 1) * self._run}L"
            lines += [
                f"for (long c = 0; c < {self.rows.column_count}; c += {self.lanes}) {{",
                f"  vf total = tw_load_{self.element}({place.replace('worker', '0')} + c);",
                f"  for (long worker = 1; worker < {self.workers}; worker++)",
                f"    total += tw_load_{self.element}({place} + c);",
                f"  tw_store_most_{output.dtype}({buffers[output.name]} + c, total, "
                f"{self.rows.column_count} - c);",
                "}",
            ]
        head = f"static void {name}(void *context, int unused) {{"
        return [head, *indented(["const tw_call *call = context;", *lines]), "}"]

    @property
    def _run(self) -> int:
        """Elements of one array, a whole number of vectors and of cache lines."""
        return round_up(
            round_up(self.rows.column_count, self.lanes), LINE_BYTES // dtype(self.element).bytes
        )

    @property
    def _type(self) -> str:
        return ARRAY_TYPES[self.element]

    def _moved(self, level: int) -> list[str]:
        """Return the lines that add all arrays of a level to those of the next level, and clear
        them."""
        return [
            f"for (long c = 0; c < {self.rows.column_count}; c++) "
            f"{{ sum{n}_{level + 1}[c] += sum{n}_{level}[c]; sum{n}_{level}[c] = 0; }}"
            for n, _ in enumerate(self.rows.sums)
        ]
