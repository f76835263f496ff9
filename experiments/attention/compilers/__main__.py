"""Our best kernels beside what compilers make of attention, in turns; see README.md of attention.

    python -m experiments.attention.compilers RESULTS [--only PATTERN] [--minutes 2]
        [--without flex compiled triton] [--out FILE]

``RESULTS`` is of ``experiments.attention``: each case runs the schedule that was the best there.
Rivals are compiled FlexAttention, ``torch.compile`` of the plain text, and the kernel of Triton's
tutorial. Writes the results after every case. Needs a GPU.
"""

from __future__ import annotations

import argparse
import json
import re
import statistics
import sys
import time
from collections.abc import Callable, Collection, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import torch

from experiments.attention.cases import CASES, AttentionCase
from experiments.attention.compilers.plain import plain_text
from experiments.attention.rivals import flex
from experiments.attention.side_by_side import beside_ours
from experiments.attention.tensors import Tensors, drawn, exact
from experiments.attention.trying import MOST_ERROR
from experiments.operators.summary import OURS
from experiments.resuming import remaining, resume, write
from experiments.rivals import compiled, usable

RIVALS = ("flex", "compiled", "triton")
MOST_SCORES = 2**33
"""Scores of a case whose plain text still fits into memory, in float32 and in 16 bits."""


def rivals(
    case: AttentionCase, tensors: Tensors, names: Collection[str]
) -> tuple[dict[str, Callable[[], Any]], dict[str, str]]:
    """The calls of some of :data:`RIVALS`, right ones alone, and why others are not among them."""
    made = {"flex": flex, "compiled": _compiled, "triton": _triton}
    wanted = exact(case, tensors)

    def checked(name: str) -> Callable[[], Any]:
        call = made[name](case, tensors)
        error = float((call().double() - wanted).norm() / wanted.norm())
        assert error < MOST_ERROR, f"off by {error:.2g}"
        return call

    return usable({name: partial(checked, name) for name in names})


def _compiled(case: AttentionCase, tensors: Tensors) -> Callable[[], Any]:
    scores = case.batch * case.heads * case.queries * case.length
    assert scores <= MOST_SCORES, f"{scores} scores do not fit into memory"
    return compiled(plain_text(case), tensors)


def _triton(case: AttentionCase, tensors: Tensors) -> Callable[[], Any]:
    from experiments.attention.compilers.blocks import attention, why_not

    reason = why_not(case.form, case.queries, case.length)
    assert not reason, reason
    return attention(tensors["q"], tensors["k"], tensors["v"], case.has("causal"))


def measure(case: AttentionCase, best: dict[str, Any], names: Collection[str]) -> dict[str, Any]:
    """Return the medians, rates, and the rivals' times over ours; all that is timed was right."""
    tensors = drawn(case)
    others, unavailable = rivals(case, tensors, names)
    row = beside_ours(case, best, others, rounds=20, seconds=0.4, heat=0.3)
    return {"unavailable": unavailable, **row}


def table(results: Mapping[str, Any]) -> str:
    """Return a Markdown table: a row for each case, with the result of each rival."""
    lines = [f"| case | us | {' | '.join(RIVALS)} |", "| --- " * (2 + len(RIVALS)) + "|"]
    for name, row in results["cases"].items():
        ratios = (f"{row['ratio'][n]:.2f}" if n in row["ratio"] else "-" for n in RIVALS)
        lines.append(f"| {name} | {1e6 * row['median_s'][OURS]:.1f} | {' | '.join(ratios)} |")
    for rival in RIVALS:
        found = [r["ratio"][rival] for r in results["cases"].values() if rival in r["ratio"]]
        if found:
            mean = f"{statistics.geometric_mean(found):.2f} geometric mean of {len(found)} cases"
            lines += ["", f"Over {rival}: {mean}, {min(found):.2f} least."]
    return "\n".join(lines) + "\n"


def main() -> int:
    options = _options()
    end = time.monotonic() + 60 * options.minutes
    known = json.loads(options.results.read_text())["cases"]
    facts = {"torch": torch.__version__, "device": torch.cuda.get_device_name()}
    results = resume(options.out, "experiments.attention.compilers", facts)
    names = [name for name in RIVALS if name not in options.without]
    cases = [case for case in CASES if "best" in known.get(case.name, {})]
    for case in remaining(cases, results, options.only, end):
        row = measure(case, known[case.name], names)
        results["cases"][case.name] = row
        write(options.out, results, table)
        words = ", ".join(f"{name} {1e6 * t:.1f} us" for name, t in row["median_s"].items())
        print(f"{case.name}: {words} {row['unavailable'] or ''}", flush=True)
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.attention.compilers")
    parser.add_argument("results", type=Path)
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    parser.add_argument("--minutes", type=float, default=2.0, help="for all of it")
    parser.add_argument("--without", nargs="+", choices=RIVALS, default=(), help="rivals left out")
    parser.add_argument("--out", type=Path, default=Path("compilers.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
