"""Measures every schedule of a part of our own CPU space, for searches to be replayed on it.

    python -m experiments.search.subspaces NAME [--seconds 1200] [--threads 1] [--out FILE.jsonl.gz]

NAME is one of ``SUBSPACES``. See README.md.
"""

from __future__ import annotations

import argparse
import gzip
import shutil
import tempfile
from collections.abc import Collection, Mapping
from copy import copy
from pathlib import Path

from measure.database import Database
from scheduler.strategies.exhaustive import ExhaustiveSearch
from scheduler.tuning.tuner import Tuner
from spaces.operators import workload
from spaces.registry import space_for
from spaces.schedule import Value
from spaces.space import Space
from spaces.target import Target, detect_target
from spaces.template import Decision, Template

Kept = Mapping[str, Collection[Value]]
"""The values of decisions that are tried; all of those that are not named."""

SUBSPACES: Mapping[str, tuple[str, Kept]] = {
    "128x768x3072": (
        "matmul m=128 n=768 k=3072",
        {"block_depth": (256, 768, 2048), "block_rows": (32, 128)},
    ),
    "16x4096x4096": ("matmul m=16 n=4096 k=4096", {}),
}
"""The workload of each, m x n x k, and what is kept of its space."""


def subspace(name: str, target: Target) -> Space:
    """The part of the workload's space that ``SUBSPACES`` says."""
    text, kept = SUBSPACES[name]
    space = space_for(workload(text), target)
    templates = [_restricted(template, kept) for template in space.templates.values()]
    return Space(space.workload, target, templates)


def _restricted(template: Template, kept: Kept) -> Template:
    part = copy(template)
    part.decisions = tuple(
        Decision(decision.name, tuple(v for v in decision.values if v in kept[decision.name]))
        if decision.name in kept
        else decision
        for decision in template.decisions
    )
    return part


def measured(name: str, target: Target, seconds: float, out: Path) -> None:
    """Write records of all schedules of a subspace, as many as ``seconds`` allow, to ``out``."""
    space = subspace(name, target)
    count = space.count()
    with tempfile.TemporaryDirectory() as folder:
        log = Path(folder) / "log.jsonl"
        with Database(f"{folder}/tuning.db") as database:
            search = ExhaustiveSearch(space)
            tuner = Tuner(space.workload, target, database, search=search, space=space)
            result = tuner.run(count, seconds)
            database.export_jsonl(log)
        with log.open("rb") as plain, gzip.open(out, "wb") as packed:
            shutil.copyfileobj(plain, packed)
    print(f"{name}: {result.trials} of {count} schedules on {target.summary}")


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("name", choices=list(SUBSPACES))
    parser.add_argument("--seconds", type=float, default=1200.0)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    out = options.out or Path(__file__).with_name(f"{options.name}.jsonl.gz")
    measured(options.name, detect_target("cpu", options.threads), options.seconds, out)


if __name__ == "__main__":
    main()
