"""Coverage of TritonBench-T.

python -m experiments.tritonbench [--source DIRECTORY] [--target cpu] [--only NAME ...]
"""

from __future__ import annotations

import argparse
import json
import platform
import sys
from collections.abc import Sequence
from datetime import date
from pathlib import Path
from typing import Any

import torch

from experiments.kernelbench.coverage import covered, lines, summary, warm
from experiments.kernelbench.problems import fetch
from experiments.tritonbench.problems import COMMIT, REPOSITORY, problems
from tilewright.spaces.target import detect_target

OUT = Path(__file__).parent / "results" / "coverage.json"


def main(given: Sequence[str] | None = None) -> None:
    asked = _options(given)
    target = detect_target(asked.target)
    warm(target)
    head = {
        "date": date.today().isoformat(),
        "command": " ".join(["python -m experiments.tritonbench", *sys.argv[1:]]),
        "commit": COMMIT,
        "target": target.summary,
        "python": platform.python_version(),
        "torch": torch.__version__,
    }
    asked.out.parent.mkdir(exist_ok=True)
    found: list[dict[str, Any]] = []
    for problem in problems(fetch(asked.source, asked.repository, COMMIT)):
        if asked.only and problem.name not in asked.only:
            continue
        found.append(covered(problem, target, asked.seconds))
        told = found[-1].get("failed") or f"{found[-1]['covered']}, left {found[-1]['left']}"
        print(f"{problem.name}: {told}", flush=True)
        report = head | {"levels": {"T": summary(found)}, "problems": found}
        asked.out.write_text(json.dumps(report, indent=1) + "\n")
    print("\n".join(lines({"T": summary(found)})))


def _options(given: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--only", nargs="*", help="names of operators")
    parser.add_argument("--source", type=Path, default=Path("tritonbench"), help="a checkout")
    parser.add_argument("--repository", default=REPOSITORY, help="where it is downloaded from")
    parser.add_argument("--target", default="cpu")
    parser.add_argument("--seconds", type=float, default=120, help="for each operator")
    parser.add_argument("--out", type=Path, default=OUT)
    return parser.parse_args(given)


if __name__ == "__main__":
    main()
