"""Fit a table to the width of a terminal: leave out some columns, and cut the text of others.

Marks before a column's name say how: ``#`` holds numbers, ``~`` may be cut, ``~~`` is cut before
others are, ``?`` may be left out.
"""

from __future__ import annotations

from collections.abc import Sequence

GAP = 2  # blanks between columns
LEAST = 12  # characters that a cut column keeps
DOTS = "..."

Rows = Sequence[Sequence[str]]


def name_of(column: str) -> str:
    """Return the name of a column without its marks."""
    return column.lstrip("#~?")


def has_mark(column: str, mark: str) -> bool:
    """Return True if ``mark`` stands before the name of a column."""
    return mark in column[: len(column) - len(name_of(column))]


def fit_columns(columns: Sequence[str], rows: Rows, width: int) -> tuple[Sequence[str], Rows]:
    """Return the columns and rows that fit ``width`` characters, as far as the marks allow that."""
    kept = list(range(len(columns)))
    widths = [_width(columns, rows, place) for place in kept]
    least = [
        min(widths[place], LEAST) if has_mark(columns[place], "~") else widths[place]
        for place in kept
    ]
    for place in reversed([place for place in kept if has_mark(columns[place], "?")]):
        if _total([least[each] for each in kept]) <= width:
            break
        kept.remove(place)
    while _total([widths[place] for place in kept]) > width:
        spare = [place for place in kept if widths[place] > least[place]]
        first = [place for place in spare if has_mark(columns[place], "~~")] or spare
        if not first:
            break
        widths[max(first, key=lambda place: widths[place])] -= 1
    chosen = [
        [_cut(row[place], widths[place], has_mark(columns[place], "~~")) for place in kept]
        for row in rows
    ]
    return [columns[place] for place in kept], chosen


def _width(columns: Sequence[str], rows: Rows, place: int) -> int:
    """Return the characters of the longest cell of a column, or of its name."""
    return max(len(name_of(columns[place])), *(len(row[place]) for row in rows), 0)


def _total(widths: Sequence[int]) -> int:
    return sum(widths) + GAP * (len(widths) - 1)


def _cut(text: str, width: int, at_end: bool) -> str:
    """Return ``text`` without its end, or some of its middle, if it is too long. The end of a
    workload tells it from others."""
    if len(text) <= width:
        return text
    end = 0 if at_end else (width - len(DOTS)) // 2
    return text[: width - len(DOTS) - end] + DOTS + text[len(text) - end :]
