"""Blocks of models compiled with kernels in them, and by torch in several ways; see README.md."""

from __future__ import annotations

import argparse
import json
import os
import platform
import subprocess
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from statistics import median, quantiles
from typing import Any

import torch

from experiments.compiled_models.blocks import BLOCKS
from experiments.compiled_models.child import FROZEN, WAYS
from tilewright.spaces.target import detect_target

ROOT = Path(__file__).parents[2]
OUT = Path(__file__).parent / "results"
CALLS = 3
"""Calls of one turn, after one that is not counted."""


class Child:
    """A process that holds a block compiled in one way."""

    def __init__(self, name: str, way: str, given: argparse.Namespace) -> None:
        work = "training" if given.training else "inference"
        words = [name, way, work, given.device, given.threads, given.db, given.seconds]
        command = [sys.executable, "-m", "experiments.compiled_models.child", *map(str, words)]
        given_path = os.environ.get("PYTHONPATH", "")
        path = os.pathsep.join([str(ROOT), str(ROOT / "scheduler/face"), given_path])
        variables = os.environ | {"OMP_NUM_THREADS": str(given.threads), "PYTHONPATH": path}
        self.process = subprocess.Popen(
            command, env=variables, text=True, stdin=subprocess.PIPE, stdout=subprocess.PIPE
        )
        self.times: list[float] = []
        self.told = self._answer()

    def _answer(self) -> Any:
        assert self.process.stdout is not None
        line = self.process.stdout.readline()
        if not line:
            raise RuntimeError(f"a process ended with {self.process.wait()}")
        return json.loads(line)

    def turn(self) -> None:
        """Run some calls, and keep the least time of them."""
        assert self.process.stdin is not None
        self.process.stdin.write(f"{CALLS + 1}\n")
        self.process.stdin.flush()
        self.times.append(min(self._answer()[1:]))

    def close(self) -> None:
        """End the process."""
        assert self.process.stdin is not None
        self.process.stdin.close()
        self.process.wait()


def compare(name: str, ways: Sequence[str], given: argparse.Namespace) -> dict[str, Any]:
    """Return the times of a block in each way, in turns; one process a way, all of them alive."""
    children: dict[str, Child] = {}
    try:
        for way in ways:
            children[way] = Child(name, way, given)
            told = children[way].told
            print(f"{name} {way}: compiled in {told['compile_seconds']:.1f} s", flush=True)
        for _ in range(given.rounds):
            for child in children.values():
                child.turn()
    finally:
        for child in children.values():
            child.close()
    eager = children["eager"].times
    return {way: child.told | _summary(child.times, eager) for way, child in children.items()}


def _summary(times: Sequence[float], eager: Sequence[float]) -> dict[str, Any]:
    """Return the median time; of eager's time over it, turn by turn, the median and the
    quartiles."""
    ratios = [other / own for other, own in zip(eager, times, strict=True)]
    lower, _, upper = quantiles(ratios, n=4)
    return {
        "seconds": median(times),
        "over_eager": median(ratios),
        "over_eager_quartiles": [lower, upper],
    }


def _machine(asked: argparse.Namespace) -> str:
    return detect_target(asked.device, None if asked.device == "cuda" else asked.threads).summary


def main(given: Sequence[str] | None = None) -> None:
    """Compare, print a line for each way, and write the results."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only", nargs="*", default=list(BLOCKS), choices=list(BLOCKS))
    parser.add_argument("--ways", nargs="*", default=list(WAYS), choices=list(WAYS))
    parser.add_argument("--training", action="store_true", help="forward and backward, on a CPU")
    parser.add_argument("--device", choices=("cpu", "cuda"), default="cpu")
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--seconds", type=float, default=240, help="of tuning a block; 0 for none")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--db", type=Path, default=Path("compiled_models.db"))
    parser.add_argument("--out", type=Path, default=OUT / "results.json")
    asked = parser.parse_args(given)
    ways = ["eager", *(way for way in asked.ways if way != "eager")]
    if asked.training and (asked.device == "cuda" or any(way in FROZEN for way in ways)):
        allowed = ", ".join(way for way in WAYS if way not in FROZEN)
        parser.error(
            f"--training with --device {asked.device}, --ways {' '.join(ways)}; "
            f"allowed: cpu, {allowed}"
        )
    found: dict[str, Any] = {}
    for name in asked.only:
        found[name] = compare(name, ways, asked)
        for way, own in found[name].items():
            lower, upper = own["over_eager_quartiles"]
            print(
                f"{name:10} {way:13} {own['seconds'] * 1e3:8.3f} ms, "
                f"{own['over_eager']:.3f} of eager ({lower:.3f} to {upper:.3f})",
                flush=True,
            )
        head = {
            "date": date.today().isoformat(),
            "command": " ".join(["python -m experiments.compiled_models", *sys.argv[1:]]),
            "machine": _machine(asked),
            "load": os.getloadavg()[0],
            "python": platform.python_version(),
            "torch": torch.__version__,
        }
        asked.out.parent.mkdir(exist_ok=True)
        asked.out.write_text(json.dumps(head | {"blocks": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
