"""Find the table of a family: the one that was kept, or one of all kernels on record."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.scheduler.dispatch.costs import (
    Comparison,
    comparisons,
    kernels_of,
    recorded,
    recorded_sizes,
    torch_beside,
)
from tilewright.scheduler.dispatch.family import Described, Family, family_of, open_axis
from tilewright.scheduler.dispatch.keeping import Kept, kept
from tilewright.scheduler.dispatch.making import KERNELS, Request, selected
from tilewright.scheduler.dispatch.open_kernels import open_seconds
from tilewright.scheduler.dispatch.open_ranges import range_seconds
from tilewright.scheduler.dispatch.profile import LARGEST_SIZE, PROBED, Profile, Range
from tilewright.scheduler.dispatch.table import Table, TableKernel
from tilewright.scheduler.opening import opened
from tilewright.spaces.errors import InputError
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target
from tilewright.spaces.validation.text import brief
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database


def found_table(
    workload: Workload | str | Described,
    target: Target,
    database: Database | str | Path = Default.DATABASE,
) -> Table:
    """Return the table that serves a workload whose axis is open, as in ``m=*``, on a target.

    Raises :class:`InputError` if the database has none, and for bad input.
    """
    family = family_of(workload, open_axis(workload), PROBED)
    with opened(database, create=False) as known:
        table = Tables(known, target).of(family)
    if table is None:
        raise InputError(
            f"no kernel of {brief(str(family), 1, 80)} is on record for {target.summary}; allowed: "
            "make a table (tilewright dispatch --tune), or another database"
        )
    return table


class Tables:
    """The tables of a target by what a database knows, whose lists are read once.

    A table has the kernels of the latest one of its family that was kept. Where none was, it has
    the best ones on record, all sizes up to the largest being equally likely. Sizes are left to
    torch by all comparisons so far.
    """

    def __init__(self, database: Database, target: Target) -> None:
        self._database, self._target = database, target

    def of(self, family: Family) -> Table | None:
        """Return the table of a family; None where no kernel of it is on record, or none that
        serves all sizes of a family whose calls cannot be cut."""
        known = (each.table() for each in self._kept if each.family == family.key)
        table = next((each for each in known if each is not None), None)
        with suppress(InputError):
            return self._of_records(family) if table is None else self._selected(family, table)
        return None

    def with_size_of(self, workload: Workload) -> Table | None:
        """Return the latest table kept that has a workload as one of its sizes; None if none
        has."""
        tables = (each.table() for each in self._kept)
        for table in (each for each in tables if each is not None):
            for size in {each for each in workload.extents.values() if each <= table.last}:
                with suppress(InputError):  # a size that only others have
                    if table.family.at(size) == workload:
                        return self._selected(table.family, table)
        return None

    @cached_property
    def _kept(self) -> list[Kept]:
        return list(kept(self._target, self._database))

    @cached_property
    def _workloads(self) -> list[Workload]:
        return recorded(self._target, self._database)

    @cached_property
    def _comparisons(self) -> list[Comparison]:
        return comparisons(self._target, self._database)

    def _selected(self, family: Family, table: Table) -> Table:
        request = Request(family, table.profile, self._target, len(table.kernels))
        torch = torch_beside(family, table.last, self._comparisons)
        kernels = [self._timed(table.family, each) for each in table.kernels]
        return selected(request, kernels, torch, kernels)

    def _timed(self, family: Family, kernel: TableKernel) -> TableKernel:
        """Return a kernel with its times of fewer rows, which tables do not keep."""
        if not kernel.opened:
            return kernel
        schedules = [each.schedule for each in kernel.opened]
        times = open_seconds(family, kernel.size, schedules, self._target, self._database)
        return replace(kernel, fewer=range_seconds(kernel.opened, times))

    def _of_records(self, family: Family) -> Table | None:
        sizes = recorded_sizes(family, LARGEST_SIZE, self._workloads)
        last = max(sizes, default=0)
        known = kernels_of(family, sizes, last, self._target, self._database) if sizes else []
        if not known:
            return None
        profile = Profile((Range(1, last, 1.0),))
        torch = torch_beside(family, last, self._comparisons)
        return selected(Request(family, profile, self._target, KERNELS), known, torch, known)
