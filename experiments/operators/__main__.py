"""Compares operators with libraries and compilers; see README.md beside this file.

    python -m experiments.operators --target cpu|cuda --family rows [--threads 1] [--seconds 8]
        [--minutes 3] [--only PATTERN] [--known FILE ...]
        [--out FILE]

Writes the results after every case, and a table beside them. A further call with the same file
goes on with cases that are not in it.
"""

from __future__ import annotations

import argparse
import json
import re
import sys
import time
from importlib import import_module
from pathlib import Path

from experiments.mkl import open_fast_path
from experiments.operators.exploring.known import add_known
from experiments.operators.families.cases import FAMILIES
from experiments.operators.summary import line, summarise, table
from experiments.resuming import remaining, resume, write
from tilewright.spaces.errors import InputError

TARGETS = {"cpu": "experiments.operators.cpu", "cuda": "experiments.operators.gpu"}
"""Modules by the kind of target: ``target(threads)``, ``facts(target)`` for the results, and
``measure(case, target, seconds)``; with a GPU, also what is ``known``."""


def main() -> int:
    options = _options()
    if options.target == "cpu":
        if options.known:
            print("operators: --known is for the target cuda", file=sys.stderr)
            return 2
        open_fast_path("experiments.operators")
    end = time.monotonic() + 60 * options.minutes
    bench = import_module(TARGETS[options.target])
    try:
        target = bench.target(options.threads)
    except InputError as error:
        print(f"operators: {error}", file=sys.stderr)
        return 2
    known = {"known": options.known} if options.target == "cuda" else {}
    path, facts = options.out, {"target": target.to_json(), **bench.facts(target)}
    results = resume(path, "experiments.operators", facts)
    cases = FAMILIES[options.target][options.family]
    for case in remaining(cases, results, options.only, end - options.seconds - 10):
        row = bench.measure(case, target, options.seconds, **known)
        results["cases"][case.name] = {"operator": case.operator, **row}
        results["summary"] = summarise(results["cases"])
        write(path, results, table)
        print(line(case.name, row), flush=True)
    print(json.dumps(results.get("summary", {}), indent=1))
    return 0


def _options() -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m experiments.operators")
    parser.add_argument("--target", choices=TARGETS, required=True)
    parser.add_argument("--family", default="rows", help="see cases.py")
    parser.add_argument("--threads", type=int, default=1, help="of a CPU")
    parser.add_argument("--minutes", type=float, default=3.0, help="for all of it")
    parser.add_argument("--seconds", type=float, default=8.0, help="of search a case")
    parser.add_argument("--only", type=re.compile, default="", help="cases whose names match")
    add_known(parser)
    parser.add_argument("--out", type=Path, default=Path("operators.json"))
    return parser.parse_args()


if __name__ == "__main__":
    sys.exit(main())
