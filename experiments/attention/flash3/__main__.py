"""Our best kernels beside those of FlashAttention-3 and FlashInfer, built from their sources, and
cuDNN's, in turns; see README.md of attention.

    python -m experiments.attention.flash3 FOLDER RESULTS [--only PATTERN] [--minutes 2]
        [--out FILE]

``FOLDER`` has the libraries that ``build.sh`` here and in ``flashinfer`` make, ``RESULTS`` is of
``experiments.attention``: each case runs the schedule that was the best there. Writes the results
after every case. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import torch

from experiments.attention.cases import CASES, AttentionCase
from experiments.attention.flash3 import library as flash3
from experiments.attention.flashinfer import library as flashinfer
from experiments.attention.rivals import rivals
from experiments.attention.side_by_side import beside_ours
from experiments.attention.tensors import drawn, exact
from experiments.attention.trying import MOST_ERROR
from experiments.operators.summary import OURS
from experiments.resuming import remaining, resume, write

LIBRARIES = {"flash3": flash3, "flashinfer": flashinfer}


def measure(case: AttentionCase, best: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return the medians, rates, and the rivals' times over ours; all that is timed was right."""
    tensors = drawn(case)
    wanted = exact(case, tensors)
    calls: dict[str, Callable[[], Any]] = {}
    error = {}
    for name, library in LIBRARIES.items():
        if library.why_not(case, folder):
            continue
        call, output = library.call_of(case, tensors, folder)
        output.fill_(float("nan"))
        call()
        error[name] = float((output.double() - wanted).norm() / wanted.norm())
        assert error[name] < MOST_ERROR, f"{case.name}: {name} is off by {error[name]}"
        calls[name] = call
    calls |= rivals(case, tensors, compiled=False)[0]
    row = beside_ours(case, best, calls, rounds=30, seconds=0.6, heat=0.4)
    return {"error": error, **row}


def table(results: dict[str, Any]) -> str:
    """Return a Markdown table with a row for each case."""
    shown = (*LIBRARIES, "cudnn")
    lines = [f"| case | us | {' | '.join((*shown, *(f'{name} over ours' for name in shown)))} |"]
    lines.append("| --- " * (2 + 2 * len(shown)) + "|")
    for name, row in results["cases"].items():
        times = [_number(row["median_s"], n, 1e6, 1) for n in (OURS, *shown)]
        ratios = [_number(row["ratio"], n, 1, 2) for n in shown]
        lines.append(f"| {' | '.join([name, *times, *ratios])} |")
    for rival in LIBRARIES:
        over = [row["ratio"][rival] for row in results["cases"].values() if rival in row["ratio"]]
        if over:
            mean = statistics.geometric_mean(over)
            lines += ["", f"Over {rival}: {mean:.2f} geometric mean, {min(over):.2f} least."]
    return "\n".join(lines) + "\n"


def _number(found: dict[str, float], name: str, unit: float, digits: int) -> str:
    return f"{unit * found[name]:.{digits}f}" if name in found else "-"


def main() -> int:
    options = _options()
    end = time.monotonic() + 60 * options.minutes
    known = json.loads(options.results.read_text())["cases"]
    facts = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    results = resume(options.out, "experiments.attention.flash3", facts)
    served = [c for c in CASES if any(not b.why_not(c, options.folder) for b in LIBRARIES.values())]
    cases = [case for case in served if "best" in known.get(case.name, {})]
    for case in remaining(cases, results, options.only, end):
        row = measure(case, known[case.name], options.folder)
        results["cases"][case.name] = row
        write(options.out, results, table)
        words = ", ".join(f"{name} {1e6 * t:.1f} us" for name, t in row["median_s"].items())
        print(f"{case.name}: {words}", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.attention.flash3")
    parser.add_argument("folder", type=Path)
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    parser.add_argument("--minutes", type=float, default=2.0, help="for all of it")
    parser.add_argument("--out", type=Path, default=Path("flash3.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
