"""Build kernels in a process of its own, while torch serves in this one.

The process is told keys on standard input, a line of JSON each. It finds the best kernel of each,
verifies what nobody measured, and keeps the binary on disk. It answers with the schedule, whose
kernel this process then loads without a compiler.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.measure.database import Database
from tilewright.measure.tables.file import is_path
from tilewright.scheduler.torch.kernels.functions import function_for, workload_of
from tilewright.spaces.backends import backend
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.settings import Default
from tilewright.spaces.target import detect_target

COMMAND = (sys.executable, "-P", "-m", "tilewright.scheduler.torch.kernels.building")
LOW_PRIORITY = 10
"""The niceness of the process, by which others go first."""
_ROOT = Path(__file__).parents[3]


@dataclass(frozen=True)
class Wanted:
    """A key whose kernel is wanted, for a kind of target with so many threads."""

    key: str
    kind: str
    threads: int


Done = Callable[[Wanted, Any], None]
"""The callback, in a thread of its own, that gets what was wanted and the function of its
kernel."""

_building: list[threading.Thread] = []


def build_later(
    wanted: Sequence[Wanted], database: Any, done: Done, end: Callable[[], None] = lambda: None
) -> None:
    """Build kernels in a process; call ``done`` with each that is there, and ``end`` after all."""

    def follow() -> None:
        with suppress(OSError, ValueError):  # the process did not start, or ended early
            for each, function in _built(wanted, database):
                with suppress(Exception):  # the operator cannot call it: torch keeps it
                    done(each, function)
        end()

    thread = threading.Thread(target=follow, daemon=True, name="tilewright-build")
    _building.append(thread)
    thread.start()


def wait_for_builds(seconds: float | None = None) -> None:
    """Wait until all kernels are built that were left for later."""
    while _building:
        _building.pop(0).join(seconds)


def _built(wanted: Sequence[Wanted], database: Any) -> Iterator[tuple[Wanted, Any]]:
    """Yield each that was wanted with its function, when its kernel is built. A kernel that fails
    is left out."""
    asked = {"database": _location(database), "wanted": [asdict(each) for each in wanted]}
    path = os.pathsep.join([str(_ROOT), *filter(None, sys.path[1:])])
    with subprocess.Popen(
        COMMAND,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | {"PYTHONPATH": path},
        text=True,
        start_new_session=True,  # a Ctrl-C is for this process
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        process.stdin.write(json.dumps(asked) + "\n")
        process.stdin.flush()  # it stays open: the process ends with this one
        for line in process.stdout:
            told = json.loads(line)
            each = wanted[told["place"]]
            with suppress(Exception):  # a kernel that does not load: torch keeps it
                yield each, _loaded(each, told)


def _loaded(wanted: Wanted, told: dict[str, Any]) -> Any:
    """Return the function of a schedule whose binary is kept."""
    target = detect_target(wanted.kind, wanted.threads or None)
    space = space_for(workload_of(wanted.key), target)
    schedule = space.ordered(Schedule.from_json(told["schedule"]))
    return backend(wanted.kind).part("function")(space, schedule, told["provenance"])


def _location(database: Any) -> str | None:
    """Return the name by which another process opens a database; the default one's is empty."""
    if database is None or database is Default.DATABASE:
        return None if database is None else ""
    if isinstance(database, Database):
        return database.location
    return str(Path(database).resolve()) if is_path(database) else str(database)


def main() -> None:
    """Build what a line of standard input asks for. The process ends when nobody holds the other
    end of that any more."""
    os.nice(LOW_PRIORITY)
    asked = json.loads(sys.stdin.readline())
    threading.Thread(target=_end_with_input, daemon=True).start()
    database = Default.DATABASE if asked["database"] == "" else asked["database"]
    for place, each in enumerate(asked["wanted"]):
        wanted = Wanted(**each)
        with suppress(Exception):  # this kernel stays torch's
            target = detect_target(wanted.kind, wanted.threads or None)
            made = function_for(workload_of(wanted.key), target, database)
            told = {"place": place, "schedule": made.schedule.to_json()}
            print(json.dumps(told | {"provenance": str(made.provenance)}), flush=True)


def _end_with_input() -> None:
    while os.read(sys.stdin.fileno(), 1):
        pass
    os._exit(1)


if __name__ == "__main__":
    main()
