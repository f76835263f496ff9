"""Keeps the results of a comparison of suites in a file from which nothing is lost."""

from __future__ import annotations

import datetime
import json
import threading
from collections.abc import Mapping
from pathlib import Path
from typing import Any

SAID = ("value_s", "trials", "seconds", "fault")


class Report:
    """The file at ``path``, with ``facts`` of the comparison. Threads may share it."""

    def __init__(self, path: Path, facts: Mapping[str, Any]) -> None:
        self._path, self._lock = path, threading.Lock()
        date = datetime.date.today().isoformat()
        self._all: dict[str, Any] = {"date": date, **facts, "seeds": [], "runs": {}, "faults": {}}

    def ended(self, seed: int, name: str, run: Mapping[str, Any]) -> None:
        """Keep a run until its seed has been compared."""
        with self._lock:
            self._all["faults" if "fault" in run else "runs"][f"{seed} {name}"] = run
            self._keep()
        tell(f"seed {seed} {name}: { {key: run[key] for key in SAID if key in run} }")

    def compared(self, found: Mapping[str, Any]) -> None:
        """Keep what is known of a seed by now in place of what was known before."""
        with self._lock:
            others = [of for of in self._all["seeds"] if of["seed"] != found["seed"]]
            self._all["seeds"] = sorted([*others, found], key=lambda of: int(of["seed"]))
            for name in found["runs"]:
                self._all["runs"].pop(f"{found['seed']} {name}", None)
            self._keep()
        times, ratios = len(found["compared_s"]), found["ratios"]
        tell(f"seed {found['seed']}, {times} times: {ratios}, +- {found['standard_errors']}")

    def _keep(self) -> None:
        made = self._path.with_suffix(".part")
        made.write_text(json.dumps(self._all, indent=1) + "\n")
        made.replace(self._path)


def tell(line: str) -> None:
    """Print a line with the time."""
    print(f"{datetime.datetime.now():%H:%M:%S} {line}", flush=True)
