"""Coverage and speed of KernelBench.

python -m experiments.kernelbench coverage [--levels 1 2 3] [--target cpu]
python -m experiments.kernelbench speed [--levels 1 2] [--device cpu] [--db kernelbench.db]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Mapping, Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from experiments.kernelbench.coverage import covered, lines, summary, warm
from experiments.kernelbench.problems import COMMIT, REPOSITORY, fetch, problems
from experiments.kernelbench.sizes import shrunk
from experiments.kernelbench.speed import geometric, timed
from tilewright.spaces.target import detect_target

OUT = Path(__file__).parent / "results"


def main(given: Sequence[str] | None = None) -> None:
    asked = _options(given)
    chosen = [
        problem
        for problem in problems(fetch(asked.source, asked.repository), asked.levels)
        if not asked.only or problem.number in asked.only
    ]
    if asked.what == "coverage":
        warm(detect_target(asked.target))
    head = {
        "date": date.today().isoformat(),
        "command": " ".join(["python -m experiments.kernelbench", *sys.argv[1:]]),
        "commit": COMMIT,
        "target": detect_target(asked.target).summary,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    asked.out.parent.mkdir(exist_ok=True)
    found: list[dict[str, Any]] = []
    if asked.resume and asked.out.exists():
        found = json.loads(asked.out.read_text())["problems"]
    done = {each["name"] for each in found}
    for problem in chosen:
        if problem.name in done:
            continue
        found.append(WHAT[asked.what](problem, asked))
        report = head | SUMMARY[asked.what](found) | {"problems": found}
        asked.out.write_text(json.dumps(report, indent=1) + "\n")
    if asked.what == "coverage":
        print("\n".join(lines(report["levels"])))


def _coverage(problem: Any, asked: argparse.Namespace) -> dict[str, Any]:
    found = covered(problem, detect_target(asked.target), asked.seconds)
    told = found.get("failed") or f"{found['covered']}, left {found['left']}"
    print(f"{found['name']}: {told}", flush=True)
    return found


def _coverages(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    levels = sorted({each["level"] for each in found})
    every = {str(level): summary(e for e in found if e["level"] == level) for level in levels}
    kept = {
        str(level): summary(e for e in found if e["level"] == level and e["kept"])
        for level in levels
    }
    return {"levels": every, "levels, filtered": kept}


def _speed(problem: Any, asked: argparse.Namespace) -> dict[str, Any]:
    options = {"db": str(asked.db), "untuned": asked.untuned, "seconds": asked.seconds}
    found: dict[str, Any] = {"name": problem.name, "level": problem.level, "kept": problem.kept}
    try:
        if asked.call_seconds:
            problem, found["smaller"] = shrunk(problem, asked.call_seconds)
        found |= timed(problem, asked.device, asked.rounds, options)
    except Exception as error:  # code of the problem's, or too little memory
        found["failed"] = f"{type(error).__name__}: {str(error)[:200]}"
    print(json.dumps(found), flush=True)
    return found


def _speeds(found: Sequence[Mapping[str, Any]]) -> dict[str, Any]:
    report: dict[str, Any] = {}
    for level in sorted({each["level"] for each in found}):
        own = [e for e in found if e["level"] == level and "failed" not in e]
        least = [min(e["over eager"]["mean"], e["over inductor"]["mean"]) for e in own]
        report[str(level)] = {
            "measured": len(own),
            "wrong": [e["name"] for e in own if e["wrong"]],
            "over the faster": geometric(least) if least else None,
            "slower than Inductor by 2 %": [
                e["name"] for e in own if e["over inductor"]["high"] < 0.98
            ],
        }
    return {"levels": report}


WHAT = {"coverage": _coverage, "speed": _speed}
SUMMARY = {"coverage": _coverages, "speed": _speeds}


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("what", choices=list(WHAT))
    parser.add_argument("--levels", type=int, nargs="+", default=[1, 2, 3], choices=[1, 2, 3])
    parser.add_argument("--only", type=int, nargs="*", help="numbers of problems")
    parser.add_argument("--source", type=Path, default=Path("kernelbench"), help="a checkout")
    parser.add_argument("--repository", default=REPOSITORY, help="where it is downloaded from")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--device", default="cpu", choices=["cpu", "cuda"])
    parser.add_argument("--seconds", type=float, default=120, help="for each problem")
    parser.add_argument("--rounds", type=int, default=30)
    parser.add_argument("--untuned", default="tune", choices=["tune", "predict", "skip"])
    parser.add_argument("--call-seconds", type=float, help="smaller sizes for longer calls")
    parser.add_argument("--resume", action="store_true", help="skip what the file has already")
    parser.add_argument("--db", type=Path, default=Path("kernelbench.db"))
    parser.add_argument("--out", type=Path)
    asked = parser.parse_args(given)
    asked.out = asked.out or OUT / f"{asked.what}.json"
    return asked


if __name__ == "__main__":
    main()
