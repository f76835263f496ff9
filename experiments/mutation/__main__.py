"""Plant changes, run tests, keep what came of it: see README.md."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import random
import subprocess
import tempfile
from collections import Counter
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from experiments.mutation.areas import AREAS, Area
from experiments.mutation.c_changes import c_changes
from experiments.mutation.changes import Change
from experiments.mutation.python_changes import compiles, python_changes
from experiments.mutation.trial import copied, limit_for, run_tests

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results.json"


@dataclass(frozen=True)
class Mutant:
    """A change of a file, ``path`` below the root, that the tests of ``area`` should see."""

    area: Area
    path: Path
    change: Change

    def described(self, source: bytes) -> dict[str, Any]:
        """What the results say of it. ``id`` changes with the file, so that what was found of
        another text of it is not taken for an answer."""
        change = asdict(self.change)
        name = json.dumps([str(self.path), change, hashlib.sha256(source).hexdigest()])
        line = self.change.line(source)
        return {
            "id": hashlib.sha256(name.encode()).hexdigest()[:12],
            "area": self.area.name,
            "path": str(self.path),
            "line": line,
            "kind": self.change.kind,
            "text": source.splitlines()[line - 1].decode().strip(),
            "before": self.change.before(source),
            "after": self.change.after,
        }


def drawn(area: Area, root: Path, seed: int, share: float) -> list[Mutant]:
    """The changes of an area that are tried: as many of each file as its size gives it, drawn by
    ``seed``."""
    generator = random.Random(f"{seed} {area.name}")
    every = [
        Mutant(area, path, change)
        for path in area.files(root)
        for change in _changes(path, (root / path).read_bytes())
    ]
    generator.shuffle(every)
    chosen: list[Mutant] = []
    for mutant in every:
        if len(chosen) == round(share * area.draws):
            break
        source = (root / mutant.path).read_bytes()
        if mutant.path.suffix != ".py" or compiles(mutant.change.apply(source)):
            chosen.append(mutant)
    return chosen


def _changes(path: Path, source: bytes) -> list[Change]:
    return python_changes(source) if path.suffix == ".py" else c_changes(source)


class Results:
    """What came of each mutant, in a file that is whole at any time.

    A survivor has a place, ``why``, for the reason why no result depends on the change; what
    somebody wrote there is kept.
    """

    def __init__(self, path: Path) -> None:
        self._path = path
        self._known: dict[str, dict[str, Any]] = {}
        if path.exists():
            self._known = {r["id"]: r for r in json.loads(path.read_text())["mutants"]}

    def __getitem__(self, name: str) -> dict[str, Any] | None:
        return self._known.get(name)

    def add(self, result: dict[str, Any]) -> None:
        """Keep one more result."""
        self._known[result["id"]] = result
        self._write()

    def summary(self) -> str:
        """How many changes of each area were seen, and each survivor without a reason."""
        every = list(self._known.values())
        tried = Counter(r["area"] for r in every)
        seen = Counter(r["area"] for r in every if r["seen"])
        lines = [f"{seen[name]:4} of {tried[name]:4} seen: {name}" for name in tried]
        unseen = [r for r in every if not r["seen"]]
        harmful = [r for r in unseen if not r["why"]]
        lines.append(
            f"{len(every) - len(unseen)} of {len(every)} seen, {len(unseen) - len(harmful)} "
            f"change no result, {len(harmful)} remain"
        )
        for r in harmful:
            change = f"{r['before']!r} -> {r['after']!r}"
            lines.append(f"{r['id']} {r['path']}:{r['line']}: {change} in {r['text']}")
        return "\n".join(lines)

    def _write(self) -> None:
        mutants = list(self._known.values())
        text = json.dumps({"commit": _commit(), "mutants": mutants}, indent=1) + "\n"
        draft = self._path.with_suffix(".draft")
        draft.write_text(text)
        os.replace(draft, self._path)


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def try_area(area: Area, mutants: Sequence[Mutant], results: Results, again: bool) -> None:
    """Run the tests on each mutant that has no result yet, or was not seen if ``again``."""
    waiting = [m for m in mutants if _is_due(results[_name(m)], again)]
    if not waiting:
        return
    tests = area.test_files(ROOT)
    with tempfile.TemporaryDirectory(prefix="mutation-cache-") as cache:
        with copied(ROOT, Path(cache)) as tree:
            usual = run_tests(tree, tests, 1800, area.unsteady)
            os.rename(tree.parent / "cache", Path(cache, "warm"))
        print(f"{area.name}: {len(waiting)} changes, {usual.seconds:.0f} s each", flush=True)
        if usual.verdict != "passed":
            print(f"  left out, since without a change {usual.test} {usual.verdict}", flush=True)
            return
        for mutant in waiting:
            result = try_mutant(mutant, tests, limit_for(usual.seconds), Path(cache, "warm"))
            before = results[result["id"]]
            results.add(result | {"why": before["why"] if before else ""})
            print(f"  {'seen' if result['seen'] else 'UNSEEN'} {_shown(result)}", flush=True)


def try_mutant(mutant: Mutant, tests: Sequence[Path], limit: float, cache: Path) -> dict[str, Any]:
    """Plant one change into a copy of the tree, and run the tests there."""
    source = (ROOT / mutant.path).read_bytes()
    with copied(ROOT, cache) as tree:
        (tree / mutant.path).write_bytes(mutant.change.apply(source))
        outcome = run_tests(tree, tests, limit, mutant.area.unsteady)
    return mutant.described(source) | {
        "seen": outcome.verdict != "passed",
        "by": outcome.test or outcome.verdict,
        "seconds": round(outcome.seconds, 1),
    }


def _is_due(known: dict[str, Any] | None, again: bool) -> bool:
    return known is None or (again and not known["seen"] and not known["why"])


def _name(mutant: Mutant) -> str:
    return mutant.described((ROOT / mutant.path).read_bytes())["id"]


def _shown(result: dict[str, Any]) -> str:
    change = f"{result['before']!r} -> {result['after']!r}"
    return f"{result['path']}:{result['line']} {change} ({result['seconds']} s, {result['by']})"


def main() -> None:
    """The command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mutation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="areas whose names contain this")
    parser.add_argument("--share", type=float, default=1.0, help="of each area's changes")
    parser.add_argument("--again", action="store_true", help="try what was not seen once more")
    parser.add_argument("--report", action="store_true", help="say what was found, and end")
    parser.add_argument("--out", type=Path, default=RESULTS)
    options = parser.parse_args()
    results = Results(options.out)
    chosen = {area: drawn(area, ROOT, options.seed, options.share) for area in AREAS}
    if not options.report:
        for area, mutants in chosen.items():
            if options.only in area.name:
                try_area(area, mutants, results, options.again)
    print(results.summary())


if __name__ == "__main__":
    main()
