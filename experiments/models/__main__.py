"""Compares whole models with torch, operator by operator; see README.md beside this file.

    python -m experiments.models --target cpu|cuda [--model NAME ...] [--batch N ...]
        [--minutes 5] [--threads 1] [--jobs 16] [--only PATTERN] [--prepare]
        [--known FILE ...] [--out FILE]

Writes the results after every operator, and tables beside them. A further call
with the same file goes on with operators that are not in it. ``--prepare`` measures nothing: it
compiles into caches what will be tried first on a GPU. ``--known`` are files of earlier results: an
operator's fastest schedules, and those of others that the roofline likes best, are tried first.
"""

from __future__ import annotations

import argparse
import re
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import Future, wait
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from typing import Any

from experiments.models.known import Known, known_of
from experiments.models.networks import MODELS, distinct
from experiments.models.summary import line, summarise, table
from experiments.resuming import resume, write
from tilewright.spaces.cuda.target import CudaTarget
from tilewright.spaces.errors import InputError
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import Target, detect_target
from tilewright.spaces.validation.checks import whole

DTYPES = {"cpu": "float32", "cuda": "float16"}
Rows = Iterator[tuple[Any, dict[str, Any]]]
EVERY = re.compile("")
Measure = Callable[..., Rows]
"""The rows of some operators, counted as they occur, each as it comes, made by a time ``end`` of
``time.monotonic``."""


def main() -> int:
    options = _options()
    end = time.monotonic() + 60 * options.minutes
    try:
        threads = options.threads if options.target == "cpu" else None
        target = detect_target(options.target, threads=threads)
        wanted = {
            f"{model}, batch {batch}": operators_of(model, batch, target)
            for batch in options.batch
            for model in options.model
        }
        known = known_of(options.known)
        if options.prepare:
            prepare(wanted, target, options.jobs, known, end)
            return 0
    except InputError as error:
        print(f"models: {error}", file=sys.stderr)
        return 2
    facts = {"target": target.to_json()}
    results = resume(options.out, "experiments.models", facts, rows="models")
    with measuring(target, options.jobs, known) as measure:
        together = isinstance(target, CudaTarget)
        run(wanted, results, measure, end, options.out, options.only, together)
    return 0


def operators_of(model: str, batch: int, target: Target) -> Counter[Any]:
    """Return the distinct operators of a model in the dtype for this kind of target, and how often
    each occurs. Attention is one operator where a template serves it."""
    dtype, batch = DTYPES[target.kind], whole("batch", batch, least=1)
    found = distinct(model, batch, dtype, whole=True)
    try:
        for operator in found:
            if operator.name.startswith("attention"):
                space_for(operator.workload, target)
    except InputError:
        return distinct(model, batch, dtype)
    return found


def run(
    wanted: Mapping[str, Counter[Any]],
    results: dict[str, Any],
    measure: Measure,
    end: float,
    path: Path,
    only: re.Pattern[str] = EVERY,
    together: bool = False,
) -> None:
    """Measure what the results lack and whose names match ``only``: each model for its share of
    the time by its operators, or all ``together``, an operator of several models once."""
    left = {
        model: Counter(
            {
                operator: count
                for operator, count in operators.items()
                if operator.name not in _rows(results, model) and only.search(operator.name)
            }
        )
        for model, operators in wanted.items()
    }
    groups = [left] if together else [{model: left[model]} for model in left]
    for number, group in enumerate(groups):
        operators = sum(group.values(), Counter())
        now, waiting = time.monotonic(), sum(len(o) for g in groups[number:] for o in g.values())
        if now > end or not operators:
            continue
        share = 1.0 if together else len(operators) / waiting
        for operator, row in measure(operators, end=now + (end - now) * share):
            for model in (m for m, missing in group.items() if operator in missing):
                entry = results["models"].setdefault(model, {"operators": {}})
                entry["operators"][operator.name] = {"count": wanted[model][operator]} | row
                entry["distinct"] = len(wanted[model])
                entry["summary"] = summarise(entry["operators"])
            write(path, results, table)
        for model in group:
            if entry := results["models"].get(model):
                print(line(model, entry["summary"], entry["distinct"]), flush=True)


@contextmanager
def measuring(target: Target, jobs: int, known: Known) -> Iterator[Measure]:
    """Choose how operators are measured on a target: on a CPU one after the other, those first that
    a model waits for longest; on a GPU all side by side, beginning with what is ``known``."""
    if isinstance(target, CudaTarget):
        from experiments.models import gpu
        from experiments.models.choosing import process_pool

        with process_pool(jobs) as processes:
            yield partial(gpu.compare, target=target, process_pool=processes, known=known)
    else:
        from experiments.models import cpu

        yield partial(cpu.compare, target=target)


def prepare(
    wanted: Mapping[str, Counter[Any]], target: Target, jobs: int, known: Known, end: float
) -> None:
    """Compile the first schedules of each operator, by ``jobs`` processes, which needs no GPU, and
    then its rivals, which does, until ``end``."""
    from experiments.models.choosing import build, process_pool
    from experiments.models.gpu import FIRST, warm

    if not isinstance(target, CudaTarget):
        raise InputError(f"nothing is prepared for {target.kind}; allowed: cuda")
    operators = list(dict.fromkeys(o for each in wanted.values() for o in each))
    with process_pool(jobs) as processes:
        waiting: list[Future[Any]] = [
            processes.submit(build, o.workload, target, (), FIRST, 1, known, o.name)
            for o in operators
        ]
        waiting += [processes.submit(warm, o) for o in operators]
        done, left = wait(waiting, timeout=max(end - time.monotonic(), 0.0))
        for future in left:
            future.cancel()
    failed = [str(reason) for future in done if (reason := future.exception())]
    print(f"{len(done)} of {len(waiting)} compiled, {len(failed)} failed", *failed[:4], sep="\n")


def _rows(results: Mapping[str, Any], model: str) -> Mapping[str, Any]:
    rows: Mapping[str, Any] = results["models"].get(model, {}).get("operators", {})
    return rows


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.models")
    parser.add_argument("--target", choices=DTYPES, required=True)
    parser.add_argument("--model", choices=MODELS, nargs="+", default=list(MODELS))
    parser.add_argument("--batch", type=int, nargs="+", default=[1])
    parser.add_argument("--minutes", type=float, default=5.0, help="for all of it")
    parser.add_argument("--threads", type=int, default=1, help="of a CPU")
    parser.add_argument("--jobs", type=int, default=0, help="processes beside a GPU; 0: all cores")
    parser.add_argument("--prepare", action="store_true", help="fill the caches for a GPU")
    parser.add_argument("--only", type=re.compile, default=EVERY, help="operators' names")
    parser.add_argument(
        "--known", type=Path, nargs="+", default=[], help="results of earlier runs on a GPU"
    )
    parser.add_argument("--out", type=Path, default=Path("models.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
