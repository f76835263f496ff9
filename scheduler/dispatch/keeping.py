"""Tables in a database: each is found by its family, in whatever words that was written."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import suppress
from dataclasses import dataclass
from typing import TYPE_CHECKING

from tilewright.measure.records.run import Run, note
from tilewright.scheduler.dispatch.table import Table, table_from_json
from tilewright.scheduler.dispatch.timing import COMMAND
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import Target

if TYPE_CHECKING:
    from tilewright.measure.database import Database


@dataclass(frozen=True)
class Kept:
    """A run that kept a table, and the key of the table's family."""

    family: str
    run: Run

    def table(self) -> Table | None:
        """Return the table; None if it is of another version, or damaged."""
        with suppress(InputError):
            return table_from_json(self.run.configuration.get("table"))
        return None


def keep(table: Table, database: Database) -> None:
    """Keep a table. It takes the place of those of its family on its target."""
    run = note(
        table.family.at(table.kernels[-1].size),
        table.target,
        session=_session(table.target),
        command=COMMAND,
        configuration={"family": table.family.key, "table": table.to_json()},
        reason="a table",
    )
    database.begin_run(run)


def kept(target: Target, database: Database) -> Iterator[Kept]:
    """Yield the tables of a target that are kept, the latest of each family first."""
    for run in reversed(list(database.runs(_session(target)))):
        family = run.configuration.get("family")
        if run.target == target and isinstance(family, str):
            yield Kept(family, run)


def _session(target: Target) -> str:
    return f"dispatch tables {target.fingerprint}"
