"""Functions that the operator calls: a key names a workload, the database chooses the kernel."""

from __future__ import annotations

import threading
import warnings
from collections.abc import Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from tilewright.measure.tables.file import EmptyDatabaseError
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.best import best
from tilewright.scheduler.query import query
from tilewright.scheduler.torch.kernels.open_keys import LINE, family_of_key, is_open, workload_at
from tilewright.spaces.language import program
from tilewright.spaces.operators import as_workload
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.scheduler.dispatch.function import Dispatch
    from tilewright.scheduler.dispatch.table import Table

Place = tuple[str, str, int]
"""A key, a kind of target, and a number of threads."""
Location = Any
"""A database as users name it: an object, a path, a URL, None or the default."""


def key_of(workload: Workload) -> str:
    """Return the text that a compiled graph holds of a workload: its program with all declarations,
    or the words of a product that has none. :func:`workload_of` reads it in any process. It is one
    line without double quotes, which Inductor copies into C++ as it is."""
    made = workload.asked
    return str(workload).replace('"', "'") if made is None else made.text.replace("\n", LINE)


@lru_cache(maxsize=4096)
def workload_of(key: str) -> Workload:
    """Return the workload of a text by :func:`key_of`; :class:`InputError` if it is none."""
    return as_workload(program(key.replace(LINE, "\n")) if LINE in key else key)


def workload_for(key: str, operands: Sequence[Any]) -> Workload:
    """Return the workload of a key, an open one for these operands."""
    return workload_at(key, operands) if is_open(key) else workload_of(key)


def function_for(workload: Workload, target: Target, database: Location) -> Any:
    """Return the function of the best kernel. What nobody measured is verified before it is
    called."""
    known = query(workload, target, database)
    unmeasured = known.provenance is not Provenance.MEASURED
    return best(workload, target, database, verify=unmeasured)


def function_of_key(key: str, target: Target, database: Location) -> Any:
    """Return the function of a key: of the best kernel, or of the kernels of a table. What neither
    a table nor a kernel serves is torch's."""
    if is_open(key):
        table = _table(key, target, database)
        return torch_function(key) if table is None else by_table(key, table, target, database)
    workload = workload_of(key)
    if query(workload, target, database).provenance is not Provenance.MEASURED:
        table = _table(key, target, database)
        if table is not None and _is_called_alike(table, workload):
            return by_table(key, table, target, database)
    return function_for(workload, target, database)


def by_table(key: str, table: Table, target: Target, database: Location) -> Dispatch:
    """Return the function of a key by the kernels of a table, and by torch beyond them."""
    from tilewright.scheduler.dispatch.function import Dispatch

    return Dispatch(table, database, torch_function(key), target)


def _table(key: str, target: Target, database: Location) -> Table | None:
    """Return the table that serves a key; None where there is none."""
    from tilewright.scheduler.dispatch.finding import Tables
    from tilewright.scheduler.opening import opened

    if database is None:
        return None
    try:
        with opened(database, create=False) as known:
            tables = Tables(known, target)
            if is_open(key):
                return tables.of(family_of_key(key))
            return tables.with_size_of(workload_of(key))
    except EmptyDatabaseError:
        return None


def _is_called_alike(table: Table, workload: Workload) -> bool:
    """Tell whether functions of a table take the operands of a workload in the same order."""
    sizes = [size for size in workload.extents.values() if size <= table.last]
    known = (calling_of(table.family.at(size)) for size in sizes)
    wanted = calling_of(workload)
    names = [array.name for array in wanted.inputs]
    return any(
        [array.name for array in each.inputs] == names
        and [array.shape for array in each.inputs] == [array.shape for array in wanted.inputs]
        for each in known
    )


def torch_function(key: str) -> Any:
    """Return the function of a key by torch's own operators."""
    from tilewright.scheduler.torch.operator.evaluation import TorchFunction, TorchFunctions

    return TorchFunctions(key) if is_open(key) else TorchFunction(workload_of(key))


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
                self._made[place] = function_of_key(key, target, self.database)
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
        if place not in self._of_torch:
            self._warn()
            self._of_torch[place] = torch_function(place[0])
            if self.build == "background" and not is_open(place[0]):
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
