"""Times the kernels of another checkout and of this one, in turns, on equal schedules.

git worktree add ../before v0.1.0
python -m experiments.regressions --before ../before --out results.json
"""

from __future__ import annotations

import argparse
import json
import os
import statistics
import subprocess
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

from experiments.regressions.cases import CASES

ROOT = Path(__file__).parents[2]
SIDE = Path(__file__).with_name("side.py")
SECONDS = 0.005
"""Seconds of one timing, about."""


class Side:
    """A process of one checkout."""

    def __init__(self, root: Path, kind: str) -> None:
        path = os.pathsep.join([str(root), str(root / "scheduler/face"), *_installed()])
        kept = {n: v for n, v in os.environ.items() if not n.startswith("OPENBLAS_")}
        self.process = subprocess.Popen(
            [sys.executable, "-P", str(SIDE), kind],
            env=kept | {"PYTHONPATH": path},
            cwd=root,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def ask(self, **request: Any) -> Any:
        """Return the answer to one request; RuntimeError if it is an error."""
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self.process.stdin.write(json.dumps(request) + "\n")
        self.process.stdin.flush()
        answer = json.loads(self.process.stdout.readline())
        if isinstance(answer, dict) and "error" in answer:
            raise RuntimeError(answer["error"])
        return answer

    def __enter__(self) -> Side:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()


def _installed() -> list[str]:
    """Return where libraries are that neither checkout has."""
    given = os.environ.get("PYTHONPATH", "").split(os.pathsep)
    return [path for path in given if path and not (Path(path) / "spaces").is_dir()]


def compared(before: Side, now: Side, text: str, rounds: int) -> dict[str, Any]:
    """Return the time before over the time now of one operator, round by round."""
    schedule = before.ask(build=[text, None])
    now.ask(build=[text, schedule])
    calls = max(1, int(SECONDS / max(before.ask(time=3), 1e-7)))
    times: dict[str, list[float]] = {"before": [], "now": []}
    for number in range(rounds):
        pair = [("before", before), ("now", now)]
        for name, side in pair if number % 2 else pair[::-1]:
            times[name].append(side.ask(time=calls))
    least = {name: min(values) for name, values in times.items()}
    middle = {name: statistics.median(values) for name, values in times.items()}
    return {
        "schedule": schedule,
        "least_s": least,
        "median_s": middle,
        "ratio": least["before"] / least["now"],
        "ratio_of_medians": middle["before"] / middle["now"],
    }


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--before", type=Path, required=True, help="the other checkout")
    parser.add_argument("--kind", choices=CASES, default="cpu")
    parser.add_argument("--rounds", type=int, default=40)
    parser.add_argument("--only", default="", help="cases whose text holds this")
    parser.add_argument("--out", type=Path)
    options = parser.parse_args()
    found: dict[str, dict[str, Any]] = {}
    roots = (options.before.resolve(), ROOT)
    with ExitStack() as stack:
        before, now = (stack.enter_context(Side(root, options.kind)) for root in roots)
        for kind, texts in CASES[options.kind].items():
            for text in (text for text in texts if options.only in text):
                try:
                    row = compared(before, now, text, options.rounds)
                except RuntimeError as error:
                    row = {"error": str(error)}
                found.setdefault(kind, {})[text] = row
                ratio = row.get("ratio", float("nan"))
                print(f"{kind:13} {ratio:6.3f} {text} {row.get('error', '')}", flush=True)
                _write(options, found)
    for kind, row in _summary(found).items():
        print(f"{kind:13} mean {row['mean']:.3f}, least {row['least']:.3f} of {row['cases']}")


def _summary(found: dict[str, dict[str, Any]]) -> dict[str, dict[str, float]]:
    ratios = {
        kind: [row["ratio"] for row in rows.values() if "ratio" in row]
        for kind, rows in found.items()
    }
    return {
        kind: {"cases": len(own), "mean": statistics.geometric_mean(own), "least": min(own)}
        for kind, own in ratios.items()
        if own
    }


def _write(options: argparse.Namespace, found: dict[str, dict[str, Any]]) -> None:
    if options.out is None:
        return
    about = {
        "command": f"python -m experiments.regressions {' '.join(sys.argv[1:])}",
        "date": datetime.now(UTC).date().isoformat(),
        "summary": _summary(found),
    }
    options.out.write_text(json.dumps({**about, "cases": found}, indent=1) + "\n")


if __name__ == "__main__":
    main()
