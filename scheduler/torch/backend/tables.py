"""Tables of regions with an open axis: found in the database, or tuned."""

from __future__ import annotations

from collections.abc import Sequence

from tilewright.measure.database import Database
from tilewright.scheduler.dispatch.explaining import sizes_of
from tilewright.scheduler.dispatch.finding import Tables
from tilewright.scheduler.dispatch.making import tuned_table
from tilewright.scheduler.dispatch.open_functions import serving
from tilewright.scheduler.dispatch.table import Table
from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.backend.options import Options
from tilewright.scheduler.torch.kernels.open_keys import family_of_key
from tilewright.spaces.backends import backend
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target


def find_tables(
    choices: Sequence[Choice], target: Target, options: Options, database: Database | None
) -> None:
    """Find the tables of regions with an open axis, or have them tuned, if that is asked for."""
    if database is None:
        for choice in choices:
            choice.leave("a dynamic size, and there is no database of tables")
        return
    tables = Tables(database, target)
    for choice in choices:
        choice.table = tables.of(family_of_key(choice.key))
        if choice.table is None and options.untuned == "tune":
            seconds = None if options.seconds is None else options.seconds / len(choices)
            try:
                choice.table = _tuned(choice, target, seconds, database)
            except InputError as reason:
                choice.leave(f"a dynamic size: {reason}")
                continue
        if choice.table is None:
            choice.leave("a dynamic size of which nothing is on record")
            continue
        choice.report.table = sizes_of(choice.table)
        if not choice.covers(choice.size):
            choice.leave(f"its table leaves the size {choice.size} to torch")


def _tuned(choice: Choice, target: Target, seconds: float | None, database: Database) -> Table:
    """Tune the kernels of a table, for sizes up to twice the one that was captured."""
    family = family_of_key(choice.key)
    return tuned_table(
        (family.operator, dict(family.parameters)),
        f"1-{2 * choice.size}:1",
        database,
        axis=family.axis,
        target=target,
        seconds=seconds,
    )


def are_built(table: Table, target: Target) -> bool:
    """Tell whether calls of the kernels of a table need no compiler."""
    is_built = backend(target.kind).part("function").is_built
    for kernel in table.kernels:
        space = space_for(table.family.at(kernel.size), target)
        schedule = kernel.schedule and space.ordered(kernel.schedule)
        if schedule is None or schedule not in space:
            return False
        axis, parts = table.family.axis, serving(table, kernel)
        opened = [space.ordered(part.schedule) for part in parts]
        made = [space.lower_open(s, axis) for s in opened if space.why_not_open(s, axis) is None]
        if not all(is_built(each, target) for each in (space.lower(schedule), *made)):
            return False
    return True
