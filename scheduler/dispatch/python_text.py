"""Write a dispatch table as Python that people can read and paste."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path

from tilewright.scheduler.dispatch.table import Table
from tilewright.spaces.validation.files import output_file


def python_text(table: Table) -> str:
    """Return a module that needs Tilewright only where it makes functions of kernels."""
    return "\n".join(_lines(table)) + "\n"


def save_python(table: Table, path: str | Path) -> None:
    """Write the module to a file."""
    with output_file(Path(path), "a Python module") as file:
        file.write(python_text(table).encode())


def _lines(table: Table) -> Iterator[str]:
    axis = table.family.axis
    yield '"""The kernels that serve calls of any size, by ``tilewright dispatch``."""'
    yield ""
    yield f"WORKLOAD = {str(table.family)!r}"
    yield f"AXIS = {axis!r}"
    yield f"TARGET = {table.target.text!r}"
    yield f"PROFILE = {str(table.profile)!r}"
    yield f"SIZES = {tuple(each.size for each in table.kernels)!r}"
    yield f"LAST = {table.last}"
    yield ""
    yield ""
    yield "def choose(size):"
    yield '    """The size of the kernel that computes the first rows of a call.'
    yield ""
    yield "    If it is less than ``size``, the remaining rows are a call of their own; if it is"
    yield "    more, the rows are copied into arrays of its size."
    yield '    """'
    yield "    if not 1 <= size <= LAST:"
    yield '        raise ValueError(f"{AXIS}={size} is not in the table; allowed: 1 to {LAST}")'
    yield from _chain([(row.last, row.size) for row in table.rows])
    yield ""
    yield ""
    yield "def prefers_torch(size):"
    yield '    """True if torch is faster than all kernels for a call of this size."""'
    found = [(row.first, row.last) for row in table.rows if row.torch]
    sizes = [f"{first} <= size <= {last}" for first, last in found]
    yield f"    return {' or '.join(sizes) or 'False'}"
    yield ""
    yield ""
    yield 'def function(size, database="tuning.db"):'
    yield '    """The kernel of one of SIZES, as a function of arrays."""'
    yield "    from tilewright import best"
    yield ""
    yield '    return best(f"{WORKLOAD} {AXIS}={size}", TARGET, database)'


def _chain(rows: list[tuple[int, int]]) -> Iterator[str]:
    """Return the kernel's size for each range of sizes; neighbours of one kernel are one range."""
    groups = groupby(rows, key=lambda row: row[1])
    ranges = [(kernel, max(last for last, _ in group)) for kernel, group in groups]
    for place, (kernel, last) in enumerate(ranges):
        if place < len(ranges) - 1:
            yield f"    {'elif' if place else 'if'} size <= {last}:"
            yield f"        return {kernel}"
        elif place:
            yield "    else:"
            yield f"        return {kernel}"
        else:
            yield f"    return {kernel}"
