"""Plant changes, run tests, keep what came of it: see README.md."""

from __future__ import annotations

import argparse
import hashlib
import json
import os
import subprocess
import tempfile
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import islice
from pathlib import Path
from typing import Any

from experiments.mutation.areas import AREAS, Area
from experiments.mutation.c_changes import c_changes
from experiments.mutation.changes import Change
from experiments.mutation.python_changes import compiles, python_changes
from experiments.mutation.trial import Outcome, copied, get_ready, run_tests
from experiments.mutation.usual import Usual, file_of, usual
from experiments.mutation.watching import Order

ROOT = Path(__file__).parents[2]
RESULTS = Path(__file__).parent / "results.json"
KEPT = Path(tempfile.gettempdir(), "tilewright-mutation")


@dataclass(frozen=True)
class Mutant:
    """A change of a file, ``path`` below the root, that the tests of ``area`` should see."""

    area: Area
    path: Path
    change: Change

    def described(self, source: bytes) -> dict[str, Any]:
        """Describe the mutant for the results. ``id`` changes with the file, so that the outcome of
        an earlier text is not taken for an answer."""
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

    def is_valid(self, source: bytes) -> bool:
        """Tell whether the changed text is a module of Python, if the unchanged one is."""
        return self.path.suffix != ".py" or compiles(self.change.apply(source))

    def rank(self, source: bytes, seed: int) -> str:
        """Return a random place among all mutants, given by the text of the line that changes."""
        start = source.rfind(b"\n", 0, self.change.start) + 1
        line = source[start : source.find(b"\n", self.change.end)]
        name = (seed, str(self.path), line, self.change.start - start, self.change.after)
        return hashlib.sha256(repr(name).encode()).hexdigest()


def drawn(area: Area, root: Path, seed: int, share: float) -> list[Mutant]:
    """Return the changes of an area that are tried, as many of each file as its size gives it. What
    is drawn of a text by ``seed`` stays when another text changes."""
    sources = {path: (root / path).read_bytes() for path in area.files(root)}
    every = [
        Mutant(area, path, change)
        for path, source in sources.items()
        for change in (python_changes if path.suffix == ".py" else c_changes)(source)
    ]
    ranked = sorted(every, key=lambda m: m.rank(sources[m.path], seed))
    valid = (m for m in ranked if m.is_valid(sources[m.path]))
    return list(islice(valid, round(share * area.draws)))


class Results:
    """The outcome of each mutant, in a file that is whole at any time.

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

    def forget_earlier(self, mutants: Sequence[dict[str, Any]]) -> None:
        """Drop what came of these mutants in earlier texts of their files."""
        names = {m["id"] for m in mutants}
        changes = set(map(_change_of, mutants))
        self._known = {
            name: result
            for name, result in self._known.items()
            if name in names or _change_of(result) not in changes
        }
        self._write()

    def summary(self) -> str:
        """Return how many changes of each area were seen, and each survivor without a reason."""
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


def _change_of(result: Mapping[str, Any]) -> tuple[str, ...]:
    """Return the parts of a mutant that stay the same where its file changes elsewhere."""
    return tuple(result[name] for name in ("path", "text", "before", "after"))


def _commit() -> str:
    command = ["git", "rev-parse", "--short", "HEAD"]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True).stdout.strip()


def try_area(
    area: Area, mutants: Sequence[Mutant], results: Results, again: bool, kept: Path
) -> None:
    """Try each mutant that has no result yet; if ``again``, each that was not seen, with all tests
    of the area."""
    waiting = [m for m in mutants if _is_due(results[_name(m)], again)]
    if not waiting:
        return
    try:
        unchanged = usual(area, ROOT, kept)
    except RuntimeError as error:
        print(f"{area.name} is left out: {error}", flush=True)
        return
    seconds = sum(unchanged.seconds.values())
    print(f"{area.name}: {len(waiting)} changes, {seconds:.0f} s unchanged", flush=True)
    for mutant in waiting:
        result = try_mutant(mutant, unchanged, again)
        before = results[result["id"]]
        results.add(result | {"why": before["why"] if before else ""})
        print(f"  {'seen' if result['seen'] else 'UNSEEN'} {_shown(result)}", flush=True)
    results.forget_earlier(list(map(_described, mutants)))


def try_mutant(mutant: Mutant, unchanged: Usual, every: bool) -> dict[str, Any]:
    """Plant one change into a copy of the tree, and run the tests that execute its line there, or
    ``every`` test of the area."""
    source = (ROOT / mutant.path).read_bytes()
    tests = unchanged.tests_of(mutant.path, mutant.change.line(source))
    if every:
        tests += unchanged.ordered(unchanged.seconds.keys() - set(tests))
    with copied(ROOT, unchanged.cache) as tree:
        (tree / mutant.path).write_bytes(mutant.change.apply(source))
        outcome = _tried(tree, tests, mutant.area, unchanged)
        if outcome.verdict == "timeout":  # the machine may have been busy
            rest = tests[tests.index(outcome.test) :] if outcome.test in tests else tests
            outcome = _tried(tree, rest, mutant.area, unchanged)
    return mutant.described(source) | {
        "seen": outcome.verdict != "passed",
        "by": f"{outcome.verdict} {outcome.test}" if outcome.verdict != "passed" else "",
        "tests": len(tests),
        "seconds": round(outcome.seconds, 1),
    }


def _tried(tree: Path, tests: Sequence[str], area: Area, unchanged: Usual) -> Outcome:
    files = list(dict.fromkeys(map(file_of, tests)))
    order = Order(tests, unchanged.seconds.keys())
    return run_tests(tree, files, unchanged.limit, [order], area.unsteady)


def _described(mutant: Mutant) -> dict[str, Any]:
    return mutant.described((ROOT / mutant.path).read_bytes())


def _is_due(known: dict[str, Any] | None, again: bool) -> bool:
    return known is None or (again and not known["seen"] and not known["why"])


def _name(mutant: Mutant) -> str:
    return _described(mutant)["id"]


def _shown(result: dict[str, Any]) -> str:
    change = f"{result['before']!r} -> {result['after']!r}"
    return f"{result['path']}:{result['line']} {change} ({result['seconds']} s, {result['by']})"


def main() -> None:
    """Run the command."""
    parser = argparse.ArgumentParser(prog="python -m experiments.mutation")
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--only", default="", help="areas whose names contain this")
    parser.add_argument("--share", type=float, default=1.0, help="of each area's changes")
    parser.add_argument("--again", action="store_true", help="try what was not seen once more")
    parser.add_argument("--report", action="store_true", help="say what was found, and end")
    parser.add_argument("--out", type=Path, default=RESULTS)
    parser.add_argument("--kept", type=Path, default=KEPT, help="what unchanged tests do")
    options = parser.parse_args()
    results = Results(options.out)
    chosen = {area: drawn(area, ROOT, options.seed, options.share) for area in AREAS}
    if not options.report:
        get_ready()
        for area, mutants in chosen.items():
            if options.only in area.name:
                try_area(area, mutants, results, options.again, options.kept)
    print(results.summary())


if __name__ == "__main__":
    main()
