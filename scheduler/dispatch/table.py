"""A dispatch table: which kernel computes the first rows of a call, by its number of rows."""

from __future__ import annotations

import json
from bisect import bisect_left
from collections.abc import Container, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import Any

from tilewright.measure.records.fields import Fields
from tilewright.measure.tables.described import described_target
from tilewright.scheduler.dispatch.family import Family, family_of
from tilewright.scheduler.dispatch.profile import LARGEST_SIZE, Profile, as_profile
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target
from tilewright.spaces.validation.files import open_now, output_file

FORMAT = "tilewright-dispatch"
CLOSED, FLAGGED, VERSION = 1, 2, 3
"""The first version has no open kernels; the second one says of a kernel whether it is open."""
MEASURED, ESTIMATED = "measured", "estimated"
LARGEST_FILE = 1 << 24
MOST_KERNELS = 64
MOST_RANGES = 64
"""Ranges of rows of one size, each with an open kernel."""


@dataclass(frozen=True)
class OpenRange:
    """The open kernel of a schedule takes calls of at most ``last`` rows, and of more than the
    range before it takes."""

    last: int
    schedule: Schedule


@dataclass(frozen=True)
class TableKernel:
    """A kernel of ``size`` rows and its latency in seconds, where weights come from memory.

    ``schedule`` is that of the best record where the latency is measured. It is None where the
    latency is an estimate: then the kernel is chosen, and checked, by whoever loads the table.
    Kernels that were timed with fewer rows take their number at each call; ``opened`` has their
    schedules by rising numbers of rows, the last of which is ``size``. ``fewer`` has the times of 0
    to ``size`` rows where they are known, and is not part of a table's file.
    """

    size: int
    seconds: float
    schedule: Schedule | None = None
    opened: tuple[OpenRange, ...] = ()
    fewer: tuple[float, ...] = field(default=(), compare=False, repr=False)

    @property
    def provenance(self) -> str:
        """``measured`` or ``estimated``."""
        return ESTIMATED if self.schedule is None else MEASURED


@dataclass(frozen=True)
class Row:
    """Calls of ``first`` to ``last`` rows begin with the kernel of ``size`` rows; ``torch`` is true
    where torch is faster than all kernels."""

    first: int
    last: int
    size: int
    torch: bool = False


@dataclass(frozen=True)
class Piece:
    """A call of the kernel of ``size`` rows for the rows from ``first`` on; ``rows`` is less than
    its size if they are copied and padded, or if it is open."""

    size: int
    first: int
    rows: int


@dataclass(frozen=True)
class Table:
    """A table for the sizes from 1 to ``last``, without gaps.

    ``regret`` is the expected loss under the profile against a kernel tuned for each size by
    itself, as a share of its time, and ``worst`` the largest one, at the size ``worst_at``.
    """

    family: Family
    target: Target
    profile: Profile
    kernels: tuple[TableKernel, ...]
    rows: tuple[Row, ...]
    regret: float
    worst: float
    worst_at: int

    @property
    def last(self) -> int:
        """The largest size."""
        return self.rows[-1].last

    @cached_property
    def _ends(self) -> tuple[int, ...]:
        return (0, *(row.last for row in self.rows))

    @cached_property
    def open_sizes(self) -> frozenset[int]:
        """The sizes of kernels that take fewer rows as well."""
        return frozenset(each.size for each in self.kernels if each.opened)

    def row(self, size: int) -> Row | None:
        """Return the row of a call of ``size``; None beyond the table."""
        place = bisect_left(self._ends, size) - 1
        return self.rows[place] if 0 <= place < len(self.rows) else None

    def pieces(self, size: int, opened: Container[int] = ()) -> tuple[Piece, ...]:
        """Return the calls of kernels that serve a call of ``size`` rows, which must be in the
        table. Kernels of the sizes ``opened`` take fewer rows as well."""
        found: list[Piece] = []
        done = 0
        while done < size:
            rows = size - done
            kernel = self.rows[bisect_left(self._ends, rows) - 1].size
            fits = kernel <= rows or kernel > size or kernel in opened
            begin = done if fits else size - kernel
            found.append(Piece(kernel, begin, min(kernel, size - begin)))
            done = begin + kernel
        return tuple(found)

    # -- as data -------------------------------------------------------------------------------

    def to_json(self) -> dict[str, Any]:
        """Return the table as a JSON object; :func:`table_from_json` reads it back unchanged."""
        return {
            "format": FORMAT,
            "version": VERSION,
            "operator": self.family.operator,
            "parameters": dict(self.family.parameters),
            "axis": self.family.axis,
            "target": self.target.to_json(),
            "profile": str(self.profile),
            "kernels": [
                {
                    "size": each.size,
                    "seconds": each.seconds,
                    "provenance": each.provenance,
                    "schedule": None if each.schedule is None else each.schedule.to_json(),
                    "open": [
                        {"last": part.last, "schedule": part.schedule.to_json()}
                        for part in each.opened
                    ],
                }
                for each in self.kernels
            ],
            "rows": [
                {"first": each.first, "last": each.last, "size": each.size, "torch": each.torch}
                for each in self.rows
            ],
            "regret": self.regret,
            "worst": self.worst,
            "worst_at": self.worst_at,
        }

    def save(self, path: str | Path) -> None:
        """Write the table to a file."""
        with output_file(Path(path), "a table") as file:
            file.write((json.dumps(self.to_json(), indent=1) + "\n").encode())


def read_table(path: str | Path) -> Table:
    """Return the table in a file; :class:`InputError` if it holds none."""
    try:
        with open_now(Path(path)) as file:
            text = file.read(LARGEST_FILE + 1)
    except OSError as error:
        raise InputError(f"cannot read the table {path}: {error.strerror}") from None
    try:
        if len(text) > LARGEST_FILE:
            raise InputError(f"it has over {LARGEST_FILE} bytes")
        return table_from_json(json.loads(text))
    except RecursionError:
        raise InputError(f"{path} is no table: it is nested too deeply") from None
    except ValueError as error:  # of JSON, text or a field
        raise InputError(f"{path} is no table: {' '.join(str(error).split())[:140]}") from None


def table_from_json(data: object) -> Table:
    """Return the table that :meth:`Table.to_json` described; :class:`InputError` if malformed."""
    fields = Fields(data)
    if (kind := fields.take("format")) != FORMAT:
        raise InputError(f"format={shown(kind)} is not allowed; allowed: {FORMAT}")
    if not CLOSED <= (version := fields.integer("version")) <= VERSION:
        raise InputError(f"version={version} is not allowed; allowed: {CLOSED} to {VERSION}")
    profile = as_profile(fields.text("profile"))
    operator, axis = fields.text("operator"), fields.text("axis")
    family = family_of((operator, fields.description("parameters")), axis, profile)
    kernels = tuple(_kernel(each, version) for each in _list(fields, "kernels", MOST_KERNELS))
    rows = tuple(map(_row, _list(fields, "rows", LARGEST_SIZE)))
    table = Table(
        family,
        described_target(fields),
        profile,
        kernels,
        rows,
        fields.number("regret", least=0.0),
        fields.number("worst", least=0.0),
        fields.integer("worst_at"),
    )
    fields.finish()
    _check(table)
    return table


def _list(fields: Fields, name: str, most: int, least: int = 1) -> Sequence[object]:
    value = fields.take(name)
    if not isinstance(value, list) or not least <= len(value) <= most:
        raise InputError(
            f"{name}={shown(value)} is not allowed; allowed: a list of {least} to {most}"
        )
    return value


def _kernel(data: object, version: int) -> TableKernel:
    fields = Fields(data)
    size, seconds = fields.integer("size"), fields.number("seconds", least=0.0)
    provenance = fields.choice("provenance", (MEASURED, ESTIMATED))
    given = fields.take("schedule")
    if (given is None) != (provenance == ESTIMATED) or not isinstance(given, dict | None):
        raise InputError(f"schedule={shown(given)} of a kernel that is {provenance} is not allowed")
    schedule = None if given is None else Schedule.from_json(given)
    opened = _opened(fields, version, size, schedule)
    fields.finish()
    return TableKernel(size, seconds, schedule, opened)


def _opened(
    fields: Fields, version: int, size: int, schedule: Schedule | None
) -> tuple[OpenRange, ...]:
    """Return the ranges of the open kernels of a size."""
    if version == CLOSED:
        return ()
    if version == FLAGGED:  # the kernel's own schedule is that of the open one
        is_open = fields.flag("open")
        return (OpenRange(size, schedule),) if is_open and schedule is not None else ()
    found = tuple(map(_range, _list(fields, "open", MOST_RANGES, least=0)))
    ends = [0, *(each.last for each in found)]
    if ends != sorted(set(ends)) or ends[-1] not in (0, size):
        raise InputError(f"open kernels for up to {shown(ends[1:])} rows; allowed: up to {size}")
    return found


def _range(data: object) -> OpenRange:
    fields = Fields(data)
    last, given = fields.integer("last"), fields.take("schedule")
    fields.finish()
    if not isinstance(given, dict):
        raise InputError(f"schedule={shown(given)} of an open kernel is not allowed")
    return OpenRange(last, Schedule.from_json(given))


def _row(data: object) -> Row:
    fields = Fields(data)
    first, last, size = (fields.integer(name) for name in ("first", "last", "size"))
    row = Row(first, last, size, fields.flag("torch"))
    fields.finish()
    return row


def _check(table: Table) -> None:
    """Raise :class:`InputError` for gaps, overlaps, and rows without a kernel."""
    sizes = [kernel.size for kernel in table.kernels]
    if sizes != sorted(set(sizes)) or not all(1 <= size <= LARGEST_SIZE for size in sizes):
        raise InputError(f"kernels of sizes {shown(sizes)}; allowed: rising ones to {LARGEST_SIZE}")
    following = 1
    for row in table.rows:
        if row.first != following or row.last < row.first or row.size not in sizes:
            raise InputError(
                f"row {row.first} to {row.last} of size {row.size}; allowed: rows without gaps, "
                f"here from {following}, of kernels that are listed"
            )
        following = row.last + 1
    if table.last != table.profile.last:
        raise InputError(f"rows end at {table.last}; allowed: {table.profile.last}, as the profile")
