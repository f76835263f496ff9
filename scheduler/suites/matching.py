"""Match records that somebody else measured with the workloads of a suite, by their keys."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from tempfile import TemporaryDirectory

from tilewright.measure.database import Database
from tilewright.measure.records.jsonl import numbered_lines, write_lines
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.spaces.errors import InputError


@dataclass(frozen=True)
class Matched:
    """Counts of the records that were ``added``, and of the ``others``, of no workload of the
    suite; ``missing`` are the members without a record in the file."""

    added: int
    others: int
    missing: tuple[Member, ...]


def match(suite: Suite, results: Path, db: str | Path, report: Callable[[str], None]) -> Matched:
    """Add the records of ``results`` that are of workloads of ``suite`` to a database.

    They are checked as for an import; ``report`` is told of what is left out.
    :class:`InputError` if the file is no export.
    """
    if not results.is_file():
        raise InputError(f"there is no file {results}")
    with numbered_lines(results):  # refused before a database is made, if it is no export
        pass
    wanted = {member.workload.key for member in suite.members}
    with TemporaryDirectory() as folder:
        own = Path(folder) / "matched.jsonl"
        with Database(Path(folder) / "all.db") as every:
            every.import_jsonl(results, report)
            records = list(every.records())
            mine = [record for record in records if record.workload.key in wanted]
            runs = [run for run in every.runs() if run.workload.key in wanted]
            write_lines(own, runs, mine)
        with Database(db) as database:
            added = database.import_jsonl(own, report)
    found = {record.workload.key for record in mine}
    missing = tuple(member for member in suite.members if member.workload.key not in found)
    return Matched(added, len(records) - len(mine), missing)
