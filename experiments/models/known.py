"""Schedules that were fast in earlier runs, with which a search on a GPU begins."""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from experiments.recorded import recorded_schedule
from tilewright.spaces.schedule import Schedule

OWN = 4
"""Schedules of an earlier run of an operator."""
OTHERS = 2
"""Schedules of each other operator that may do for this one."""


@dataclass(frozen=True)
class Known:
    """The fastest schedules by the names of operators, whatever their batch, the fastest first."""

    fast: Mapping[str, Sequence[Schedule]] = field(default_factory=dict)

    def own(self, name: str) -> list[Schedule]:
        """Return the schedules of the operator itself."""
        return list(self.fast.get(name, ()))

    def others(self, name: str) -> list[Schedule]:
        """Return the schedules of all other operators, each once."""
        found = (s for n, each in self.fast.items() if n != name for s in each[:OTHERS])
        return list(dict.fromkeys(found))


def known_of(paths: Sequence[Path]) -> Known:
    """Read the fast schedules of results at some paths, of models or of single operators. Those of
    one path follow those of the paths before it."""
    found: dict[str, dict[Schedule, None]] = {}
    for path in paths:
        for name, row in _rows(json.loads(path.read_text())):
            listed = [row, *row.get("explored", ())][: OWN + 1]
            fast = [recorded_schedule(each["schedule"]) for each in listed if "schedule" in each]
            found[name] = found.get(name, {}) | dict.fromkeys(fast)
    return Known({name: list(fast) for name, fast in found.items()})


def _rows(results: Mapping[str, Any]) -> Iterator[tuple[str, Mapping[str, Any]]]:
    yield from results.get("cases", {}).items()
    for entry in results.get("models", {}).values():
        yield from entry["operators"].items()
