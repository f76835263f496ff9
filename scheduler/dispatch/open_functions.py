"""The functions of the open kernels of a table."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor

from tilewright.scheduler.dispatch.open_kernels import open_function
from tilewright.scheduler.dispatch.table import OpenRange, Table, TableKernel
from tilewright.scheduler.functions.open_function import OpenFunction
from tilewright.spaces.target import Target

BUILDERS = 8
"""Kernels that are built side by side, at most."""


class OpenFunctions:
    """The functions of one size, each with the largest number of rows that it is called with. The
    last one takes calls of more rows as well."""

    def __init__(self, parts: Sequence[tuple[int, OpenFunction]]) -> None:
        ends, self._functions = zip(*parts, strict=True)
        self._ends = ends[:-1]

    def at(self, rows: int) -> OpenFunction:
        """Return the function for calls of so many rows."""
        return self._functions[bisect_left(self._ends, rows)]


def open_functions(table: Table, target: Target) -> dict[int, OpenFunctions]:
    """Return the functions of open kernels by size, of those that serve fewer rows and that this
    target has."""
    parts = [(each.size, part) for each in table.kernels for part in serving(table, each)]
    with ThreadPoolExecutor(BUILDERS) as pool:
        made = pool.map(
            lambda each: open_function(table.family, each[0], each[1].schedule, target), parts
        )
        found: dict[int, list[tuple[int, OpenFunction]]] = {}
        for (size, part), function in zip(parts, made, strict=True):
            if function is not None:
                found.setdefault(size, []).append((part.last, function))
    return {size: OpenFunctions(each) for size, each in found.items()}


def serving(table: Table, kernel: TableKernel) -> list[OpenRange]:
    """Return those of a kernel's ranges that have numbers of rows for which the table uses it."""
    rows = [each for each in table.rows if each.size == kernel.size]
    found, before = [], 0
    for part in kernel.opened:
        most = min(part.last, kernel.size - 1)
        if any(max(row.first, before + 1) <= min(row.last, most) for row in rows):
            found.append(part)
        before = part.last
    return found
