"""All templates of a target under edge inputs: right kernels refused, planted faults caught.

    python -m experiments.verification --edges [--target cpu|cuda|cuda:sm_90a] [--schedules 4]
        [--minutes 2.5] [--only PATTERN] [--out FILE]

A GPU that is named is emulated.
"""

from __future__ import annotations

import re
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, closing
from functools import partial
from typing import Any

from experiments.resuming import resume, write
from experiments.verification.cases import CASES, EDGES, LARGE
from experiments.verification.outcomes import JUDGED, count, table, totals
from experiments.verification.planting import FAULTS, Planted
from tilewright.measure.executor import LocalExecutor
from tilewright.scheduler.verification import Verdict, draw, emulate, measure
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.space import Space
from tilewright.spaces.target import Target, detect_target

Judge = Callable[[Space, Sequence[Schedule]], Iterator[Verdict]]


def run(options: Any) -> int:
    """Return the command: 1 if a right kernel was refused, or a planted fault was not found."""
    try:
        target = detect_target(options.target)
    except InputError as error:
        print(f"verification: {error}", file=sys.stderr)
        return 2
    emulated = options.target.startswith("cuda:")
    on_device = options.target == "cuda"
    cases = EDGES | {name: t for name, t in CASES.items() if on_device and name not in LARGE}
    cases = {name: text for name, text in cases.items() if options.only.search(name)}
    results = resume(options.out, "experiments.verification", {"target": target.to_json()})
    planted = results.setdefault("planted", {})
    end, seed = time.monotonic() + 60 * options.minutes, results.get("rounds", 0)
    with ExitStack() as opened:
        judge: Judge = emulate
        if not emulated:
            judge = partial(measure, executor=opened.enter_context(closing(LocalExecutor(target))))
        for name, text in cases.items():
            if time.monotonic() > end:
                break
            _case(results["cases"], planted, name, text, target, judge, options.schedules, seed)
            write(options.out, results | {"rounds": seed + 1}, _table)
    print(_table(results))
    wrong = any("wrong" in counts for counts in totals(results["cases"]).values())
    missed = any(found["missed"] for found in planted.values())
    return int(wrong or missed)


def _case(
    outcomes: dict[str, Any],
    planted: dict[str, Any],
    name: str,
    text: str,
    target: Target,
    judge: Judge,
    number: int,
    seed: int,
) -> None:
    """Judge schedules of every template that serves a case, as they are and with faults."""
    try:
        space = space_for(workload(text), target)
    except InputError:
        return
    schedules = draw(space, number * len(space.templates), seed)
    right = []
    for verdict in judge(space, schedules):
        count(outcomes, name, verdict.schedule.template, verdict)
        right += [verdict.schedule] if verdict.right else []
        if verdict.outcome == "wrong":
            print(f"WRONG {name}: {verdict.schedule}: {verdict.error_text}", flush=True)
    for fault in (fault for fault in FAULTS if re.search(fault.cases, name)):
        wrong = Planted(space, fault)
        verdicts = judge(wrong, wrong.served(right))
        found = [verdict for verdict in verdicts if verdict.outcome in JUDGED]
        if found:
            row = planted.setdefault(fault.name, {"caught": 0, "planted": 0, "missed": []})
            row["planted"] += len(found)
            row["caught"] += sum(v.outcome == "wrong" for v in found)
            row["missed"] += [f"{name}: {v.schedule}" for v in found if v.right]


def _table(results: Any) -> str:
    lines = ["", "| planted fault | kernels | caught |", "| --- | --- | --- |"]
    for name, found in results["planted"].items():
        lines.append(f"| {name} | {found['planted']} | {found['caught']} |")
    return table(results) + "\n".join(lines) + "\n"
