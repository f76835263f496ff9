"""Cache files of Kernel Tuner (van Werkhoven, FGCS 90, 2019): one entry a configuration."""

from __future__ import annotations

from typing import Any

from tilewright.scheduler.replay.formats.foreign import foreign_recording
from tilewright.scheduler.replay.formats.times import MILLISECONDS, as_seconds, total_seconds
from tilewright.scheduler.replay.recording import Outcome, Recording

COSTS = ("compile_time", "benchmark_time")


def cache_recording(name: str, content: dict[str, Any]) -> Recording:
    """Return the recording in a cache file; KeyError or TypeError if it is none.

    A ``time`` is in milliseconds, or names an error; so are the costs of an entry.
    """
    keys = content["tune_params_keys"]
    entries = list(content["cache"].values())
    configurations = [{key: entry[key] for key in keys} for entry in entries]
    outcomes = [
        Outcome(
            as_seconds(entry["time"], MILLISECONDS),
            total_seconds((entry.get(cost) for cost in COSTS), MILLISECONDS),
        )
        for entry in entries
    ]
    kernel, device = str(content.get("kernel_name", name)), str(content.get("device_name", name))
    return foreign_recording(name, kernel, device, configurations, outcomes)
