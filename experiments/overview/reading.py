"""Reads ratios from committed results: a rival's time over ours."""

from __future__ import annotations

import json
import re
import statistics
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from experiments.models.summary import ALONE
from experiments.operators.summary import FAST, NO_RIVALS, OURS
from experiments.overview.entries import Entry

EXPERIMENTS = Path(__file__).parents[1]
NOT_COMPARED = {*NO_RIVALS, ALONE, "reading"}
"""Contenders that compute less than we do, or are ours."""


@dataclass(frozen=True)
class Case:
    """A case: the fastest rival, its time over ours, and whether our kernel is Winograd's."""

    name: str
    rival: str
    ratio: float
    winograd: bool = False


@dataclass(frozen=True)
class Found:
    """Cases of an entry: ``points`` are drawn and averaged; ``cases`` give the least and losses.

    Both are the same but for networks, whose points are sums over their operators.
    """

    points: tuple[Case, ...]
    cases: tuple[Case, ...]

    @property
    def mean(self) -> float:
        return statistics.geometric_mean(case.ratio for case in self.points)

    @property
    def least(self) -> Case:
        return min(self.cases, key=lambda case: case.ratio)

    @property
    def losses(self) -> list[Case]:
        return sorted((c for c in self.cases if c.ratio < 1), key=lambda case: case.ratio)

    @property
    def winograd(self) -> int:
        return sum(case.winograd for case in self.cases)


@cache
def load(file: str) -> Mapping[str, Any]:
    """Return a file of results, named from ``experiments/``."""
    found: Mapping[str, Any] = json.loads((EXPERIMENTS / file).read_text())
    return found


def read(entry: Entry) -> Found:
    """Return all cases of an entry."""
    if "models" in load(entry.files[0]):
        return _networks(load(entry.files[0]))
    fast = entry.numerics == "fast"
    cases = {
        case.name: case
        for file in entry.files
        for name, row in load(file)["cases"].items()
        if re.search(entry.only, name)
        if (case := _case(name, row, entry.times, entry.rivals, fast))
    }
    return Found(tuple(cases.values()), tuple(cases.values()))


def _case(
    name: str, row: Mapping[str, Any], field: str, rivals: tuple[str, ...], fast: bool = False
) -> Case | None:
    times = row.get(field, {})
    ours = OURS if OURS in times else row.get("best")
    if fast and FAST in times:
        ours, row = FAST, row["fast"]
    candidates = rivals or set(times) - NOT_COMPARED
    known = {rival: times[rival] for rival in sorted(candidates) if rival in times}
    if ours not in times or not known:
        return None
    rival = min(known, key=known.__getitem__)
    winograd = row.get("schedule", {}).get("template") == "winograd"
    return Case(name, rival, known[rival] / times[ours], winograd)


def _networks(results: Mapping[str, Any]) -> Found:
    models = results["models"]
    networks = (Case(n, "", model["summary"]["ratios"]["fastest"]) for n, model in models.items())
    return Found(tuple(networks), tuple(_operators(models)))


def _operators(models: Mapping[str, Any]) -> Iterator[Case]:
    for model, entry in models.items():
        for name, row in entry["operators"].items():
            if case := _case(f"{model}: {name}", row, "median_s", ()):
                yield case


def machine(file: str) -> str:
    """Return the hardware that a file's times are of."""
    results = load(file)
    target = results.get("target") or results.get("machine", {}).get("target") or {}
    return str(target.get("model") or results["device"])


def date(file: str) -> str:
    """Return the day of a file's run."""
    results = load(file)
    return str(results.get("date") or results["machine"]["date"])


def command(file: str) -> str:
    """Return the command that made a file, or the arguments of its calls where only these are
    kept."""
    results = load(file)
    if found := results.get("command") or results.get("machine", {}).get("command"):
        return str(found)
    return "\n".join(_call(call) for call in results["calls"])


def _call(call: Mapping[str, Any]) -> str:
    options = " ".join(f"--{name} {call[name]}" for name in ("minutes", "seconds", "gpus"))
    return f"python -m experiments.gpu_matmul {options} --only '{call['only']}'"
