"""Functions that the operator calls: a key names a workload, the database chooses the kernel."""

from __future__ import annotations

import threading
from functools import lru_cache
from typing import Any

from tilewright.scheduler.best import best
from tilewright.scheduler.query import Provenance, query
from tilewright.spaces.language import program
from tilewright.spaces.operators import as_workload
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload

Location = Any
"""A database as users name it: an object, a path, a URL, None or the default."""


def key_of(workload: Workload) -> str:
    """The text that a compiled graph holds of a workload: its program with all declarations, or the
    words of a product that has none. :func:`workload_of` reads it in any process."""
    made = getattr(workload, "program", None)
    return str(workload) if made is None else made.text


@lru_cache(maxsize=4096)
def workload_of(key: str) -> Workload:
    """The workload of a text by :func:`key_of`; :class:`InputError` if it is none."""
    return as_workload(program(key) if "\n" in key else key)


def function_for(workload: Workload, target: Target, database: Location) -> Any:
    """The function of the best kernel. What nobody measured is verified before it is called."""
    known = query(workload, target, database)
    unmeasured = known.provenance is not Provenance.MEASURED
    return best(workload, target, database, verify=unmeasured)


class Functions:
    """Functions by key, kind of device and number of threads; each made once, when it is first
    wanted, by the database that was named last."""

    def __init__(self) -> None:
        self.database: Location = Default.DATABASE
        self._made: dict[tuple[str, str, int], Any] = {}
        self._lock = threading.RLock()

    def get(self, key: str, kind: str, threads: int) -> Any:
        """The function of a key for a ``kind`` of target; a GPU's has 0 threads."""
        if (found := self.known(key, kind, threads)) is not None:
            return found
        with self._lock:
            if (key, kind, threads) not in self._made:
                target = detect_target(kind, threads or None)
                made = function_for(workload_of(key), target, self.database)
                self._made[key, kind, threads] = made
        return self._made[key, kind, threads]

    def known(self, key: str, kind: str, threads: int) -> Any:
        """The function that was made already, or None."""
        return self._made.get((key, kind, threads))

    def put(self, key: str, kind: str, threads: int, function: Any) -> None:
        """Let calls of a key run this function from now on."""
        with self._lock:
            self._made[key, kind, threads] = function


functions = Functions()
"""The functions of this process."""
