"""Time the kernels of the steps, and the fastest that a short search finds, in turns; see
README.md."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import tempfile
from collections.abc import Sequence
from contextlib import closing
from datetime import date
from pathlib import Path
from typing import Any

from experiments.dispatch.device import in_turns
from experiments.kernel_steps.plot import draw, read
from experiments.kernel_steps.steps import PRODUCTS, STEPS
from tilewright import tune, workload
from tilewright.scheduler.defaults import local_executor
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import Target, detect_target

RESULTS = Path(__file__).with_name("results")
PICTURE = Path(__file__).parents[2] / "docs/_static/a-kernel.svg"
FOUND = "found by a search"


def seconds_of_steps(target: Target, kind: str, search_seconds: float) -> dict[str, float]:
    """Return the seconds of each step's kernel on a target, and of the one that a search of so many
    seconds finds, by name."""
    work = workload(PRODUCTS[kind])
    kernels: dict[str, tuple[Schedule, Kernel]] = {}
    for step in STEPS:
        if step.kind == kind:
            own = step.space(work, target)
            schedule = step.schedule(own)
            kernels[step.idea] = (schedule, own.lower(schedule))
    space = space_for(work, target)
    if search_seconds:
        with tempfile.TemporaryDirectory() as folder:
            best = tune(work, target, f"{folder}/steps.db", seconds=search_seconds).best
        kernels[FOUND] = (best.schedule, space.lower(best.schedule))
    with closing(local_executor(target)) as executor:
        found = in_turns(space, kernels, executor)
    return {name: found[name] for name in kernels if name in found}


def main(given: Sequence[str] | None = None) -> None:
    """Time the steps of a device, write their seconds, and draw the plot of both devices."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--device", choices=tuple(PRODUCTS), default="cpu")
    parser.add_argument("--seconds", type=float, default=60, help="of the search; 0 for none")
    parser.add_argument("--out", type=Path, help="by default a file of the device in results/")
    asked = parser.parse_args(given)
    target = detect_target(asked.device)
    found: dict[str, Any] = {
        "target": target.summary,
        "date": date.today().isoformat(),
        "command": shlex.join(["python", "-m", "experiments.kernel_steps", *sys.argv[1:]]),
        "product": PRODUCTS[asked.device],
        "seconds": seconds_of_steps(target, asked.device, asked.seconds),
    }
    for name, seconds in found["seconds"].items():
        print(f"{name}: {seconds * 1e6:.1f} us", flush=True)
    out = asked.out or RESULTS / f"{asked.device}.json"
    out.write_text(json.dumps(found, indent=1) + "\n")
    if asked.out is None:
        PICTURE.write_text(draw(read(RESULTS)))


if __name__ == "__main__":
    main()
