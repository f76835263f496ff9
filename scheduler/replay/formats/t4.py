"""Results files in the T4 format (Tørring et al., "Towards a Benchmarking Suite for Kernel Tuners",
IPDPSW 2023): one result a configuration."""

from __future__ import annotations

from typing import Any

from tilewright.scheduler.replay.formats.foreign import foreign_recording
from tilewright.scheduler.replay.formats.times import as_seconds, total_seconds, unit_seconds
from tilewright.scheduler.replay.recording import Outcome, Recording


def t4_recording(name: str, content: dict[str, Any]) -> Recording:
    """Return the recording in a results file; KeyError or TypeError if it is none,
    :class:`InputError` for an unknown unit.

    The format names neither kernel nor device. ``timeunit`` of the metadata says what times are
    in, and so does the ``unit`` of each measurement; milliseconds where neither does.
    """
    results, unit = content["results"], _unit_of_times(content)
    configurations = [result["configuration"] for result in results]
    outcomes = [
        Outcome(_seconds(result, unit), _cost(result.get("times", {}), unit)) for result in results
    ]
    return foreign_recording(name, name, name, configurations, outcomes)


def _unit_of_times(content: dict[str, Any]) -> float:
    """Return the seconds of the file's unit."""
    metadata = content.get("metadata") or {}
    return unit_seconds(metadata.get("timeunit", content.get("timeunit", "ms")), "timeunit")


def _seconds(result: dict[str, Any], unit: float) -> float | None:
    if result["invalidity"] != "correct":
        return None
    measured = {item["name"]: item for item in result["measurements"]}["time"]
    own = measured.get("unit")
    return as_seconds(measured["value"], unit_seconds(own, "unit") if own else unit)


def _cost(times: dict[str, Any], unit: float) -> float | None:
    return total_seconds([times.get("compilation"), *times.get("runtimes", ())], unit)
