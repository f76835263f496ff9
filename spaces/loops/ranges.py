"""The C that finds the terms of one row where a sorted table, or pointers, make a range of them."""

from __future__ import annotations

from collections.abc import Callable

from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import Range, ranges

Entry = Callable[[str], str]
"""C text of the entry of the range's table at a place."""


def range_of_terms(program: Program, stage: Stage) -> Range | None:
    """Return the range of a reduction whose slowest axis is that of entries; None if it has
    none."""
    found = ranges(program).reductions.get(stage.name)
    return found if found and stage.over[0] == found.entry else None


def limits(program: Program, stage: Stage, found: Range, row: str, entry: Entry) -> list[str]:
    """Return the lines of ``low`` and ``high``: a row's terms are from one to before the other,
    whatever the table holds."""
    entries, inner = program.extent[found.entry], 1
    for axis in stage.over[1:]:
        inner *= program.extent[axis]
    times = f" * {inner}" if inner > 1 else ""
    if found.pointers:
        ends = [
            f"tw_whole_max(0, tw_whole_min({entry(at)}, {entries}))" for at in (row, f"{row} + 1")
        ]
        return [f"const i64 low = {ends[0]}{times};", f"const i64 high = {ends[1]}{times};"]
    return [
        *_first("low", entries, entry, f"< {row}", times),
        *_first("high", entries, entry, f"<= {row}", times),
    ]


def _first(name: str, entries: int, entry: Entry, before: str, times: str) -> list[str]:
    """Return the lines that search a table for the first entry that is not ``before``."""
    return [
        f"i64 {name} = 0;",
        f"for (i64 beyond = {entries}; {name} < beyond;) {{",
        f"  const i64 middle = {name} + (beyond - {name}) / 2;",
        f"  if ({entry('middle')} {before}) {name} = middle + 1; else beyond = middle;",
        "}",
        *([f"{name} = {name}{times};"] if times else []),
    ]
