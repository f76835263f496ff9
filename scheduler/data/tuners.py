"""Exports in the formats of other tuners: a cache file of Kernel Tuner, or a T4 results file, for
each workload, target and template, which is a kernel to them."""

from __future__ import annotations

import hashlib
import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.measure.records.measurement import ErrorKind, Measurement
from tilewright.measure.records.ranking import SEARCH
from tilewright.scheduler.data.selection import EVERYTHING, Selection
from tilewright.spaces.errors import InputError
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.validation.files import make_folder, output_file

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.measure.records.record import Record
    from tilewright.spaces.target import Target
    from tilewright.spaces.workloads.workload import Workload

SCHEMA = "1.0.0"
"""Version of both formats."""
MILLISECONDS = 1e3  # in a second


@dataclass(frozen=True)
class Measured:
    """The schedules of one template for a workload and target, each with its last measurement by a
    search. Attempts that the machine lost, doubted ones, comparisons, and schedules with other
    decisions than the last one are left out."""

    workload: Workload
    target: Target
    template: str
    measurements: Sequence[Measurement]

    @property
    def kernel(self) -> str:
        """The name of the kernel: its template and what it computes."""
        return f"{self.template}: {self.workload}"

    @property
    def file_name(self) -> str:
        """A name that no other kernel of any database has."""
        about = "\0".join((self.workload.key, self.target.fingerprint, self.template))
        digest = hashlib.sha256(about.encode()).hexdigest()[:12]
        name = re.sub(r"[^0-9A-Za-z_]+", "_", f"{self.workload.operator}-{self.template}"[:80])
        return f"{name}-{digest}.json"

    @property
    def parameters(self) -> dict[str, list[Any]]:
        """The values that occur, of each decision, in their order."""
        found: dict[str, list[Any]] = {}
        for measurement in self.measurements:
            for name, value in measurement.schedule.decisions:
                values = found.setdefault(name, [])
                if value not in values:
                    values.append(value)
        return {name: sorted(values, key=_by_kind) for name, values in found.items()}


def kernels(database: Database, selection: Selection = EVERYTHING) -> Iterator[Measured]:
    """Yield what a database knows of each kernel that is wanted and ran."""
    for workload, target in selection.pairs(database):
        found: dict[str, dict[Schedule, Measurement]] = {}
        for record in filter(selection.takes, database.records(workload, target)):
            if _counts(record):
                of_template = found.setdefault(record.schedule.template, {})
                of_template[record.schedule] = record.measurement
        for template, measurements in found.items():
            yield Measured(workload, target, template, _alike(list(measurements.values())))


def cache_file(kernel: Measured) -> dict[str, Any]:
    """Return the content of a cache file of Kernel Tuner (van Werkhoven, FGCS 90, 2019). Times are
    in milliseconds."""
    names = list(kernel.parameters)
    entries = {}
    for measurement in kernel.measurements:
        values = measurement.schedule.values
        entry: dict[str, Any] = {name: values[name] for name in names}
        entry |= {"time": _time(measurement), **_costs(measurement)}
        if measurement.score is not None:
            entry["times"] = [MILLISECONDS * sample for sample in measurement.samples]
        entries[",".join(str(value) for value in values.values())] = entry
    return {
        "schema_version": SCHEMA,
        "device_name": kernel.target.summary,
        "kernel_name": kernel.kernel,
        "problem_size": [value for _, value in kernel.workload.parameters if type(value) is int]
        or [1],
        "tune_params_keys": names,
        "tune_params": kernel.parameters,
        "objective": "time",
        "cache": entries,
    }


def t4_file(kernel: Measured) -> dict[str, Any]:
    """Return the content of a T4 results file (Tørring et al., IPDPSW 2023). Times are in
    milliseconds."""
    return {
        "schema_version": SCHEMA,
        "metadata": {
            "timeunit": "milliseconds",
            "kernel_name": kernel.kernel,
            "device_name": kernel.target.summary,
        },
        "results": [_t4_result(measurement) for measurement in kernel.measurements],
    }


def _t4_result(measurement: Measurement) -> dict[str, Any]:
    costs = _costs(measurement)
    return {
        "timestamp": costs["timestamp"],
        "configuration": dict(measurement.schedule.values),
        "objectives": ["time"],
        "times": {
            "compilation": costs["compile_time"],
            "framework": 0.0,
            "search_algorithm": 0.0,
            "validation": costs["verification_time"],
            "runtimes": [costs["benchmark_time"]],
        },
        "invalidity": _invalidity(measurement),
        "correctness": int(measurement.error_kind not in _INCORRECT),
        "measurements": [{"name": "time", "value": _time(measurement), "unit": "ms"}],
    }


FILES: dict[str, Callable[[Measured], dict[str, Any]]] = {
    "kernel-tuner": cache_file,
    "t4": t4_file,
}
"""Functions that make the content of a file of each format."""


def export_kernels(
    database: Database, path: Path, format: str, selection: Selection = EVERYTHING
) -> tuple[int, int]:
    """Write each kernel of a selection: to ``path`` if its name ends in ``.json``, which holds one
    kernel alone, or else to a file of its own in the folder ``path``. Return how many kernels and
    schedules were written.

    Raises :class:`InputError` where there are none, several for one file, or one cannot be written.
    """
    found = list(kernels(database, selection))
    if not found:
        raise InputError("the database has no measured schedule that these options select")
    is_file = path.suffix.lower() == ".json"
    if is_file and len(found) > 1:
        raise InputError(
            f"{path.name} holds one kernel, and {len(found)} are selected; allowed: a folder, "
            "without .json, which gets a file for each"
        )
    if not is_file:
        make_folder(path)
    for kernel in found:
        place = path if is_file else path / kernel.file_name
        with output_file(place, "an export") as file:
            file.write(json.dumps(FILES[format](kernel), indent=1).encode())
    return len(found), sum(len(kernel.measurements) for kernel in found)


_COMPILATION = (ErrorKind.COMPILE, ErrorKind.COMPILE_TIMEOUT)
_INCORRECT = (ErrorKind.WRONG, ErrorKind.OUT_OF_BOUNDS)


def _counts(record: Record) -> bool:
    measurement = record.measurement
    return measurement.round == SEARCH and not (measurement.lost or record.doubted)


def _alike(measurements: Sequence[Measurement]) -> Sequence[Measurement]:
    """Return those whose schedules have the decisions of the last one: an earlier version of the
    template may have had others."""
    names = set(measurements[-1].schedule.values)
    return [each for each in measurements if set(each.schedule.values) == names]


def _time(measurement: Measurement) -> float | str:
    """Return the time, or Kernel Tuner's name for the failure."""
    kind = measurement.error_kind
    if measurement.score is not None:
        return MILLISECONDS * measurement.score
    if kind in _COMPILATION:
        return "CompilationFailedConfig"
    return "InvalidConfig" if kind is ErrorKind.REJECTED else "RuntimeFailedConfig"


def _invalidity(measurement: Measurement) -> str:
    """Return T4's name for the outcome."""
    kind = measurement.error_kind
    if measurement.score is not None:
        return "correct"
    if kind in _COMPILATION:
        return "compile"
    if kind in _INCORRECT:
        return "correctness"
    names = {ErrorKind.REJECTED: "constraints", ErrorKind.TIMEOUT: "timeout"}
    return names.get(kind, "runtime") if kind is not None else "runtime"


def _costs(measurement: Measurement) -> dict[str, Any]:
    """Return what an attempt took, and when it was. Checking is part of running here."""
    return {
        "compile_time": MILLISECONDS * measurement.build_seconds,
        "verification_time": 0.0,
        "benchmark_time": MILLISECONDS * measurement.run_seconds,
        "strategy_time": 0.0,
        "framework_time": 0.0,
        "timestamp": _moment(measurement.started_at),
    }


def _moment(at: float) -> str:
    try:
        return datetime.fromtimestamp(at, UTC).isoformat()
    except (OverflowError, ValueError, OSError):
        return ""


def _by_kind(value: Any) -> tuple[str, Any]:
    return type(value).__name__, value
