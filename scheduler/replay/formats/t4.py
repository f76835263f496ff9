"""Results files in the T4 format (Tørring et al., "Towards a Benchmarking Suite for Kernel Tuners",
IPDPSW 2023): one result a configuration."""

from __future__ import annotations

from typing import Any

from scheduler.replay.formats.foreign import foreign_recording
from scheduler.replay.formats.milliseconds import seconds, total_seconds
from scheduler.replay.recording import Outcome, Recording


def t4_recording(name: str, content: dict[str, Any]) -> Recording:
    """The recording in a results file; KeyError or TypeError if it is none.

    The format names neither kernel nor device. Times are in milliseconds.
    """
    results = content["results"]
    configurations = [result["configuration"] for result in results]
    outcomes = [Outcome(_seconds(result), _cost(result.get("times", {}))) for result in results]
    return foreign_recording(name, name, name, configurations, outcomes)


def _seconds(result: dict[str, Any]) -> float | None:
    if result["invalidity"] != "correct":
        return None
    measured = {item["name"]: item["value"] for item in result["measurements"]}
    return seconds(measured["time"])


def _cost(times: dict[str, Any]) -> float | None:
    return total_seconds([times.get("compilation"), *times.get("runtimes", ())])
