"""Runs that go on where an earlier one ended, and rivals of which some do not run."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass

from experiments.resuming import remaining, resume, write
from experiments.rivals import usable


@dataclass(frozen=True)
class Named:
    """A case that has but a name."""

    name: str


def test_a_run_goes_on_with_cases_that_the_file_lacks(tmp_path, monkeypatch):
    monkeypatch.setattr("sys.argv", ["experiments/some.py", "--only", "a|c"])
    path, cases = tmp_path / "new" / "found.json", [Named("a"), Named("b"), Named("c")]
    results = resume(path, "experiments.some", {"target": "this"})
    for case in remaining(cases[:2], results, re.compile("a|c")):
        results["cases"][case.name] = {"row": 1}
        write(path, results, lambda found: "\n".join(found["cases"]))
    assert path.with_suffix(".md").read_text() == "a"

    again = resume(path, "experiments.some", {"target": "that"})
    assert [case.name for case in remaining(cases, again, re.compile(""))] == ["b", "c"]
    assert not list(remaining(cases, again, re.compile(""), end=0.0))
    assert (again["cases"], again["target"]) == ({"a": {"row": 1}}, "that")
    assert again["command"] == "python -m experiments.some --only 'a|c'"
    assert json.loads(path.read_text())["target"] == "this"


def test_rivals_that_do_not_run_say_why():
    def silent():
        raise NotImplementedError

    def cannot_be_made():
        raise ValueError("no such type\nand more")

    makers = {"right": lambda: lambda: 1, "silent": lambda: silent, "unmade": cannot_be_made}
    calls, unavailable = usable(makers)
    assert list(calls) == ["right"]
    assert unavailable == {"silent": "NotImplementedError", "unmade": "no such type"}
