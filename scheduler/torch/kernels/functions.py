"""Functions that the operator calls: a key names a workload, the database chooses the kernel."""

from __future__ import annotations

import threading
import warnings
from functools import lru_cache
from typing import Any

from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.best import best
from tilewright.scheduler.query import query
from tilewright.spaces.language import program
from tilewright.spaces.operators import as_workload
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.workload import Workload

LINE = "; "
"""The end of a line of a program within a key."""
Place = tuple[str, str, int]
"""A key, a kind of target, and a number of threads."""
Location = Any
"""A database as users name it: an object, a path, a URL, None or the default."""


def key_of(workload: Workload) -> str:
    """Return the text that a compiled graph holds of a workload: its program with all declarations,
    or the words of a product that has none. :func:`workload_of` reads it in any process. It is one
    line without double quotes, which Inductor copies into C++ as it is."""
    made = getattr(workload, "program", None)
    return str(workload).replace('"', "'") if made is None else made.text.replace("\n", LINE)


@lru_cache(maxsize=4096)
def workload_of(key: str) -> Workload:
    """Return the workload of a text by :func:`key_of`; :class:`InputError` if it is none."""
    return as_workload(program(key.replace(LINE, "\n")) if LINE in key else key)


def function_for(workload: Workload, target: Target, database: Location) -> Any:
    """Return the function of the best kernel. What nobody measured is verified before it is
    called."""
    known = query(workload, target, database)
    unmeasured = known.provenance is not Provenance.MEASURED
    return best(workload, target, database, verify=unmeasured)


class Functions:
    """Functions by key, kind of device and number of threads; each made once, when it is first
    wanted, by the database that was named last.

    ``build`` says what becomes of a key without one: it is built at once (``"wait"``), or torch's
    own operators compute it, for ever (``"never"``) or until a process has built it
    (``"background"``). A warning says so once.
    """

    def __init__(self) -> None:
        self.database: Location = Default.DATABASE
        self.build = "wait"
        self._made: dict[Place, Any] = {}
        self._of_torch: dict[Place, Any] = {}
        self._offered: dict[str, list[Any]] = {}
        self._lock = threading.RLock()

    def get(self, key: str, kind: str, threads: int) -> Any:
        """Return the function of a key for a ``kind`` of target; a GPU's has 0 threads."""
        place = (key, kind, threads)
        if (found := self._made.get(place)) is not None:
            return found
        with self._lock:
            if (offered := self._of_offered(key, kind, threads)) is not None:
                return self._made.setdefault(place, offered)
            if place not in self._made and self.build != "wait":
                return self._by_torch(place)
            if place not in self._made:
                target = detect_target(kind, threads or None)
                self._made[place] = function_for(workload_of(key), target, self.database)
        return self._made[place]

    def known(self, key: str, kind: str, threads: int) -> Any:
        """Return the kernel's function that was made already, or None."""
        return self._made.get((key, kind, threads))

    def put(self, key: str, kind: str, threads: int, function: Any) -> None:
        """Let calls of a key run this function from now on."""
        with self._lock:
            self._made[key, kind, threads] = function

    def offer(self, key: str, function: Any) -> None:
        """Let calls of a key run this function of a CPU where nothing else was made, and torch has
        as many threads as the function, or more."""
        with self._lock:
            self._offered.setdefault(key, []).append(function)

    def _of_offered(self, key: str, kind: str, threads: int) -> Any:
        """Return the function with the most threads that may be used; None if there is none."""
        fitting = [f for f in self._offered.get(key, ()) if f.target.threads <= threads]
        return max(fitting, key=lambda f: f.target.threads) if kind == "cpu" and fitting else None

    def _by_torch(self, place: Place) -> Any:
        """Return torch's operators in the place of a kernel."""
        from tilewright.scheduler.torch.operator.evaluation import TorchFunction

        if place not in self._of_torch:
            self._warn()
            self._of_torch[place] = TorchFunction(workload_of(place[0]))
            if self.build == "background":
                from tilewright.scheduler.torch.kernels.building import Wanted, build_later
                from tilewright.scheduler.torch.operator.definition import put_wanted

                build_later([Wanted(*place)], self.database, put_wanted)
        return self._of_torch[place]

    def _warn(self) -> None:
        if self._of_torch:
            return
        until = (
            "until it is built" if self.build == "background" else "it, as nothing is built here"
        )
        warnings.warn(
            f"there is no kernel for this machine and number of threads: torch computes {until}",
            RuntimeWarning,
            stacklevel=2,
        )


functions = Functions()
"""The functions of this process."""
