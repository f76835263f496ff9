"""The tool that plants changes: what it changes, and that a trial sees a change."""

from __future__ import annotations

import subprocess
from pathlib import Path

import pytest

from experiments.mutation.areas import AREAS
from experiments.mutation.c_changes import c_changes
from experiments.mutation.changes import Change
from experiments.mutation.python_changes import python_changes
from experiments.mutation.trial import ALONE, copied, run_tests

ROOT = Path(__file__).parents[2]

PYTHON = b'''
"""A module of 1 number."""

def f(x: int, y: int = 2) -> int:
    """Double 3 times."""
    if x < y and not y == 4:
        raise ValueError(f"{x + 1} is less")
    print(x)
    return x * y
'''

C = b"""
#define N 3
/* adds 1 + 1 */
static int add(int a, int b) {
  if (a < b && !b) return 0;
  show("%d + 1", a);
  return a + b;
}
"""


def written(changes: list[Change], source: bytes) -> set[tuple[str, str]]:
    return {(change.before(source), change.after) for change in changes}


def test_python_is_changed_where_it_does_something() -> None:
    assert written(python_changes(PYTHON), PYTHON) == {
        ("2", "3"),
        ("4", "5"),
        ("<", "<="),
        ("and", "or"),
        ("==", "!="),
        ("not y == 4", "(y == 4)"),
        ("x < y and not y == 4", "(not (x < y and not y == 4))"),
        ('raise ValueError(f"{x + 1} is less")', "pass"),
        ("print(x)", "pass"),
        ("*", "//"),
    }


def test_c_is_changed_outside_of_comments_and_texts() -> None:
    assert written(c_changes(C), C) == {
        ("0", "1"),
        (" < ", " <= "),
        (" && ", " || "),
        ("!", ""),
        ("a < b && !b", "!(a < b && !b)"),
        ('  show("%d + 1", a);', ";"),
        (" + ", " - "),
    }


def test_a_change_says_where_it_is() -> None:
    change = next(c for c in python_changes(PYTHON) if c.after == "//")
    assert change.line(PYTHON) == 9
    assert b"return x // y" in change.apply(PYTHON)


def test_every_area_has_files_and_tests() -> None:
    for area in AREAS:
        assert area.files(ROOT), area.name
        assert area.test_files(ROOT), area.name


@pytest.mark.skipif(
    subprocess.run([*ALONE, "true"], capture_output=True).returncode != 0,
    reason="this system makes no namespaces for users",
)
def test_a_trial_runs_the_tests_of_a_copy(tmp_path: Path) -> None:
    root, cache = tmp_path / "root", tmp_path / "cache"
    root.mkdir()
    cache.mkdir()
    (root / "code.py").write_text("ONE = 1\n")
    (root / "test_code.py").write_text("import code\n\ndef test_it():\n    assert code.ONE == 1\n")
    subprocess.run(["git", "init", "-q", root], check=True)
    tests = [Path("test_code.py")]
    with copied(root, cache) as tree:
        assert run_tests(tree, tests, 60).verdict == "passed"
        (tree / "code.py").write_text("ONE = 2\n")
        outcome = run_tests(tree, tests, 60)
        assert (outcome.verdict, outcome.test) == ("failed", "test_code.py::test_it")
        (tree / "code.py").write_text("while True: pass\n")
        assert run_tests(tree, tests, 3).verdict == "timeout"
    assert (root / "code.py").read_text() == "ONE = 1\n"
