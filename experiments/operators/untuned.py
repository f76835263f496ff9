"""Measure how fast kernels are that nobody tuned, on a GPU; see README.md beside this file.

    python -m experiments.operators.untuned [--known FILE ...] [--seconds 2] [--tune 0]
        [--minutes 3] [--jobs 3] [--only PATTERN] [--out FILE]

Of every family, models' operators among them, a case of each in turn: the kernel that ``best``
gives with an empty database, in turns with the fastest that are known of earlier results, or are
found in so many seconds where none are; and, if asked for, what ``tune`` finds in so many seconds
with an empty database. Writes the results after every case, and a table beside
them; a further call with the same file goes on with cases not in it. Needs a GPU.
"""

from __future__ import annotations

import argparse
import re
import statistics
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from experiments.gpu_matmul.timing import interleave
from experiments.models.choosing import kernels, process_pool, untuned_first
from experiments.models.gpu import Contest
from experiments.models.known import Known, known_of
from experiments.models.networks import MODELS, distinct
from experiments.operators import batched, convolutions, gpu, grouped
from experiments.operators.exploring.explore import Explorer
from experiments.operators.exploring.finals import summary
from experiments.operators.families.cases import FAMILIES
from experiments.operators.summary import OURS, UNTUNED, of_tuned
from experiments.resuming import remaining, resume, write
from tilewright.measure.database import Database
from tilewright.measure.interfaces import Built
from tilewright.scheduler.tuning.tuner import tune
from tilewright.spaces.algebra.sequences import in_turn
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.workload import Workload

TIMING: Mapping[str, Any] = {"rounds": 16, "seconds": 0.3, "lead": 48, "heat": 0.05}
TUNED = "by tune"
TRIALS = 4096
"""More than there is time for."""
KNOWN = 2
"""Schedules of a case that were the fastest."""


@dataclass(frozen=True)
class Entry:
    """A case of a family, and what makes its explorer for a target."""

    family: str
    name: str
    workload: Workload
    explorer: Callable[[Any], Explorer]


def entries() -> list[Entry]:
    """Return the entries of all families in turns, so that a run that ends early has some of
    each."""
    families = [[_entry(n, c, gpu) for c in cases] for n, cases in FAMILIES["cuda"].items()]
    layers = [convolutions.Layer(*each, n) for each in convolutions.LAYERS for n in (32, 1)]
    families.append([_entry("convolutions", layer, convolutions) for layer in layers])
    families.append([_entry("grouped", case, grouped) for case in grouped.CASES])
    families.append([_entry("batched", case, batched) for case in batched.CASES["cuda"]])
    families += [list(_of_model(model, batch)) for batch in (1, 8) for model in MODELS]
    return in_turn(families)


def _entry(family: str, case: Any, module: Any) -> Entry:
    return Entry(family, case.name, case.workload, lambda t: module.explorer_of(case, t))


def _of_model(model: str, batch: int) -> Iterator[Entry]:
    for each in distinct(model, batch, "float16", whole=True):
        family = f"{model}, batch {batch}"
        yield Entry(
            family,
            f"{family}: {each.name}",
            each.workload,
            lambda t, o=each: Contest(o, t).explorer,
        )


def main() -> None:
    options = _options()
    end, path = time.monotonic() + 60 * options.minutes, options.out
    target = detect_target("cuda")
    results = resume(path, "experiments.operators.untuned", {"target": target.to_json()})
    known = known_of(options.known)
    wanted = list(remaining(entries(), results, options.only))
    with process_pool(options.jobs) as processes:
        waiting = [
            processes.submit(untuned_first, each.workload, target, known_of_entry(known, each))
            for each in wanted
        ]
        for entry, future in zip(wanted, waiting, strict=True):
            if time.monotonic() > end:
                break
            row = measure(entry.explorer(target), future.result(), options.seconds, options.tune)
            results["cases"][entry.name] = {"operator": entry.family, **row}
            write(path, results, table)
            times = " ".join(f"{who} {1e6 * t:.1f}" for who, t in row["median_s"].items())
            print(f"{entry.family:20s} {entry.name:46s} {_share(row)} us: {times}", flush=True)
        processes.shutdown(cancel_futures=True)


def known_of_entry(known: Known, entry: Entry) -> list[Schedule]:
    """Results have an operator of a model by its name alone, whatever the batch."""
    own = known.own(entry.name) or known.own(entry.name.split(": ", 1)[-1])
    return own[:KNOWN]


def measure(
    explorer: Explorer, built: Sequence[Built], seconds: float, tuning: float
) -> dict[str, Any]:
    """Return the row of a case, of which the first kernel is what nobody tuned."""
    for each in built:
        explorer.judge(each)
    first, others = built[0].candidate.schedule, explorer.best
    if others in ([], [first]):
        others = explorer.explore(seconds)[:KNOWN]
    calls = {f"{OURS} {n}": explorer.calls[s] for n, s in enumerate(others)}
    if first in explorer.seconds:
        calls |= {UNTUNED: explorer.calls[first]}
    row: dict[str, Any] = {"untuned": first.to_json(), "outcomes": dict(explorer.outcomes)}
    if tuning:
        calls[TUNED], row["tuning"] = _tuned(explorer, tuning)
    times = interleave(calls, **TIMING) if calls else {}
    moved = explorer.space.workload.least_bytes
    return row | summary(times, [s.to_json() for s in others], moved)


def _tuned(explorer: Explorer, seconds: float) -> tuple[Any, dict[str, Any]]:
    """Run ``tune`` for so many seconds: the schedule that it finds, and how."""
    space = explorer.space
    with tempfile.TemporaryDirectory() as folder, Database(f"{folder}/tuning.db") as database:
        found = tune(space.workload, space.target, database, TRIALS, seconds)
    assert found.best is not None, f"nothing found: {dict(found.failures)}"
    schedule = found.best.schedule
    if schedule not in explorer.calls:
        for each in kernels(space, [schedule]):
            explorer.judge(each)
    how = {"schedule": schedule.to_json(), "trials": found.trials, "seconds": found.seconds}
    return explorer.calls[schedule], how


def table(results: Mapping[str, Any]) -> str:
    """Return how fast untuned kernels are as a share of tuned ones, by family and then by case."""
    cases = results["cases"]
    lines = [
        f"Measured on {results['date']} by `{results['command']}`.",
        "",
        "| family | cases | geometric mean | least | below 0.5 |",
        "| --- " * 5 + "|",
    ]
    families: dict[str, dict[str, Any]] = {}
    for name, row in cases.items():
        families.setdefault(row["operator"], {})[name] = row
    for family, rows in families.items():
        if shares := of_tuned(rows):
            mean, low = statistics.geometric_mean(shares), sum(s < 0.5 for s in shares)
            lines.append(f"| {family} | {len(shares)} | {mean:.2f} | {min(shares):.2f} | {low} |")
    lines += ["", "| case | tuned, us | template | untuned, us | template | share | by tune, us |"]
    lines.append("| --- " * 7 + "|")
    for name, row in cases.items():
        tuned, untuned = (row.get(key, {}).get("template", "-") for key in ("schedule", "untuned"))
        cells = [name, _us(row, OURS), tuned, _us(row, UNTUNED), untuned, _share(row)]
        cells.append(_us(row, TUNED))
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines) + "\n"


def _us(row: Mapping[str, Any], who: str) -> str:
    seconds = row["median_s"].get(who)
    return "-" if seconds is None else f"{1e6 * seconds:.1f}"


def _share(row: Mapping[str, Any]) -> str:
    """Return how fast the untuned kernel is; what kept it from being right, if it was not."""
    shares = of_tuned({"": row})
    return f"{shares[0]:.2f}" if shares else str(row["outcomes"])


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.operators.untuned")
    parser.add_argument("--known", type=Path, nargs="+", default=[], help="earlier results")
    parser.add_argument("--seconds", type=float, default=2.0, help="of search, if none is known")
    parser.add_argument("--tune", type=float, default=0.0, help="seconds of tune for each case")
    parser.add_argument("--minutes", type=float, default=3.0, help="for all of it")
    parser.add_argument("--jobs", type=int, default=3, help="processes that compile")
    parser.add_argument("--only", type=re.compile, default=re.compile(""), help="cases' names")
    parser.add_argument("--out", type=Path, default=Path("untuned.json"))
    return parser.parse_args()


if __name__ == "__main__":
    main()
