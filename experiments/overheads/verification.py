"""Times a candidate's run, now and before each element had an allowance of its own.

    python -m experiments.overheads.verification [--before COMMIT] [--rounds 8] [--out FILE]

Two processes, one of this tree and one of a worktree of the commit ``--before``, build the same
schedules and run them in turns (ABBA), so that both meet the same machine. Writes
``verification.json``.
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from experiments.overheads.results import with_facts, write
from tilewright.scheduler.verification import draw
from tilewright.spaces.cpu.target import detect_cpu
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for

HERE = Path(__file__).parent
ROOT = HERE.parents[1]
BEFORE = "bb3a5f8^"  # "Carry the error allowed of sums through the epilogue, ..."
WORKLOADS = (
    "matmul m=512 n=512 k=512",
    'matmul m=512 n=512 k=512 epilogue="gelu(x + bias[n])"',
    "matmul m=128 n=256 k=64",
)
CANDIDATES = 16


class Side:
    """A process of one tree that runs the same candidates whenever it is told to."""

    def __init__(self, tree: Path, text: str, schedules: Sequence[Any]) -> None:
        paths = os.pathsep.join(map(str, (tree, tree / "scheduler/face")))
        self._process = subprocess.Popen(
            [sys.executable, "-P", str(HERE / "side.py")],
            cwd=tree,
            env=os.environ | {"PYTHONPATH": paths},
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.known = self._ask({"workload": text, "schedules": schedules})

    def run(self, places: Sequence[int]) -> dict[str, Any]:
        """Wall time of running these candidates once, and how fast each was."""
        return self._ask(places)

    def close(self) -> None:
        """End the process."""
        self._process.communicate("")

    def _ask(self, question: object) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        print(json.dumps(question), file=self._process.stdin, flush=True)
        return json.loads(self._process.stdout.readline())


@contextmanager
def worktree(commit: str) -> Iterator[Path]:
    """Check out the tree of a commit, for a while."""
    with tempfile.TemporaryDirectory() as folder:
        place = Path(folder, "before")
        git = ["git", "-C", str(ROOT), "worktree"]
        subprocess.run([*git, "add", "-q", "--detach", str(place), commit], check=True)
        try:
            yield place
        finally:
            subprocess.run([*git, "remove", "--force", str(place)], check=True)


def compared(before: Path, text: str, rounds: int) -> dict[str, Any]:
    """Medians over the rounds, of milliseconds a candidate and of the ratio of both sides."""
    space = space_for(workload(text), detect_cpu(1))
    schedules = [s.to_json() for s in draw(space, 4 * CANDIDATES, 1)]
    sides = [Side(tree, text, schedules) for tree in (before, ROOT)]
    places = [i for i, _ in enumerate(schedules) if all(s.known[i] for s in sides)][:CANDIDATES]
    taken: list[list[float]] = [[], []]
    scores: list[list[float]] = [[], []]
    for i in range(rounds):
        for which in (0, 1, 1, 0) if i else (0, 1):  # the first calls fill caches
            found = sides[which].run(places)
            if i:
                taken[which].append(found["seconds"] / len(places))
                scores[which].append(sum(found["scores"]))
    for side in sides:
        side.close()
    pairs = zip(taken[0], taken[1], strict=True)
    return {
        "workload": text,
        "candidates": len(places),
        "milliseconds_before": round(1e3 * statistics.median(taken[0]), 2),
        "milliseconds_now": round(1e3 * statistics.median(taken[1]), 2),
        "ratio": round(statistics.median(now / then for then, now in pairs), 4),
        "ratio_of_latencies": round(min(scores[1]) / min(scores[0]), 4),
    }


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.overheads.verification")
    parser.add_argument("--before", default=BEFORE)
    parser.add_argument("--rounds", type=int, default=8)
    parser.add_argument("--out", type=Path, default=HERE / "verification.json")
    options = parser.parse_args()
    with worktree(options.before) as before:
        found = [compared(before, text, options.rounds) for text in WORKLOADS]
    write(options.out, with_facts(found, before=options.before))


if __name__ == "__main__":
    main()
