"""Recorded GPU search spaces: reading Kernel Tuner's cache files and the T4 results format."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from spaces.errors import InputError

Configuration = tuple[int | str, ...]


@dataclass(frozen=True)
class Recording:
    """Every configuration of one kernel on one device, and its seconds (None if it failed).

    ``domains`` gives each parameter's values in ascending order; a configuration has one value a
    parameter, in the same order. Parameters with a single value are left out.
    """

    name: str
    domains: Mapping[str, tuple[int | str, ...]]
    seconds: Mapping[Configuration, float | None]

    @property
    def best(self) -> float:
        """Seconds of the fastest configuration."""
        return min(time for time in self.seconds.values() if time is not None)


def read_recording(path: Path) -> Recording:
    """The recording in a ``.json`` or ``.json.gz`` file; InputError if it is not one."""
    try:
        data = path.read_bytes()
        text = (gzip.decompress(data) if path.suffix == ".gz" else data).decode()
        content = parse_unclosed(text)
        rows = _t4_rows(content) if "results" in content else _cache_rows(content)
    except (OSError, EOFError, ValueError, KeyError, TypeError, AttributeError) as error:
        raise InputError(f"{path} is not a recorded space: {error}") from None
    if not any(time is not None for _, time in rows):
        raise InputError(f"{path} is not a recorded space: no configuration of it ran")
    return _recording(path.name.split(".")[0], rows)


def parse_unclosed(text: str) -> Any:
    """JSON whose last closing braces may be missing, as when its writer was stopped."""
    text = text.rstrip().rstrip(",")
    for missing in range(4):
        try:
            return json.loads(text + "}" * missing)
        except json.JSONDecodeError as error:
            problem = error
    raise problem


def _cache_rows(content: Any) -> list[tuple[dict[str, Any], float | None]]:
    keys = content["tune_params_keys"]
    return [
        ({key: entry[key] for key in keys}, _seconds(entry["time"]))
        for entry in content["cache"].values()
    ]


def _t4_rows(content: Any) -> list[tuple[dict[str, Any], float | None]]:
    rows = []
    for result in content["results"]:
        measured = {item["name"]: item["value"] for item in result["measurements"]}
        right = result["invalidity"] == "correct"
        rows.append((result["configuration"], _seconds(measured.get("time")) if right else None))
    return rows


def _seconds(milliseconds: Any) -> float | None:
    """Times are milliseconds; anything else names an error."""
    is_time = isinstance(milliseconds, int | float) and 0 < milliseconds < 1e6
    return milliseconds / 1e3 if is_time else None


def _recording(name: str, rows: list[tuple[dict[str, Any], float | None]]) -> Recording:
    domains = {}
    for key in rows[0][0]:
        values = {configuration[key] for configuration, _ in rows}
        if len(values) > 1:
            domains[key] = tuple(sorted(values))
    seconds = {tuple(configuration[key] for key in domains): time for configuration, time in rows}
    return Recording(name, domains, seconds)
