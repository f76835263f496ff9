"""The tool that plants changes: what it changes, and that a trial sees a change."""

from __future__ import annotations

import os
import signal
import subprocess
from pathlib import Path
from typing import Any

import pytest

from experiments.mutation.__main__ import Results
from experiments.mutation.apart import fork_apart
from experiments.mutation.areas import AREAS, Area
from experiments.mutation.c_changes import c_changes
from experiments.mutation.changes import Change
from experiments.mutation.python_changes import python_changes
from experiments.mutation.trial import copied, run_tests
from experiments.mutation.usual import usual
from experiments.mutation.watching import Order

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


def test_every_pattern_of_an_area_is_that_of_files() -> None:
    for area in AREAS:
        for pattern in (*area.sources, *area.tests):
            assert any(ROOT.glob(pattern)), f"{area.name}: {pattern}"


def has_namespaces() -> bool:
    _, status = os.waitpid(fork_apart(lambda: 0), 0)
    return status == 0


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A tree with two functions, each with a test of its own, and one that runs both."""
    if not has_namespaces():
        pytest.skip("this system makes no namespaces for users")
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "planted.py").write_text(
        "ONE = 1\n\ndef f():\n    return ONE\n\ndef g(\n    x=2):\n    return x\n"
    )
    (folder / "test_planted.py").write_text(
        "from time import sleep\nimport planted\n\n"
        "def test_both():\n    sleep(0.2)\n    assert planted.f() + planted.g() == 3\n\n"
        "def test_f():\n    assert planted.f() == 1\n\n"
        "def test_g():\n    assert planted.g() == 2\n"
    )
    subprocess.run(["git", "init", "-q", folder], check=True)
    return folder


TOY = Area("toy", ("planted.py",), ("test_planted.py",), draws=1)


def names(*tests: str) -> list[str]:
    return [f"test_planted.py::test_{name}" for name in tests]


def test_a_trial_runs_the_tests_of_a_copy(root: Path, tmp_path: Path) -> None:
    cache = tmp_path / "cache"
    cache.mkdir()
    with copied(root, cache) as tree:

        def outcome(*plugins: object, limit: float = 250.0) -> tuple[str, str]:
            found = run_tests(tree, ["test_planted.py"], lambda test: limit, plugins)
            return found.verdict, found.test

        assert outcome() == ("passed", *names("g"))
        (tree / "planted.py").write_text("def f():\n    return 2\n\ndef g():\n    return 1\n")
        assert outcome(Order(names("both", "g", "f"), names("both", "f", "g"))) == (
            "failed",
            *names("g"),
        )
        (tree / "planted.py").write_text("while True: pass\n")
        assert outcome(limit=1.0) == ("timeout", "")
    assert (root / "planted.py").read_text().startswith("ONE = 1")


def test_tests_that_execute_a_line_are_found(root: Path, tmp_path: Path) -> None:
    found = usual(TOY, root, tmp_path / "kept")
    assert found.tests_of(Path("planted.py"), 4) == names("f", "both")
    assert found.tests_of(Path("planted.py"), 8) == names("g", "both")
    assert found.tests_of(Path("planted.py"), 7)[2:] == names("both")  # an import executes it
    assert found.tests_of(Path("another.c"), 1)[2:] == names("both")
    assert found.seconds[names("both")[0]] >= 0.2


def test_what_a_fork_apart_starts_ends_with_it() -> None:
    if not has_namespaces():
        pytest.skip("this system makes no namespaces for users")
    said, saying = os.pipe()
    command = ["sh", "-c", "ls /proc; echo .; sleep 1000"]
    child = fork_apart(lambda: subprocess.call(command, stdout=saying))
    os.close(saying)
    heard = b""
    while not heard.endswith(b".\n"):
        more = os.read(said, 65536)
        assert more, "the fork ended"
        heard += more
    assert len([name for name in heard.split() if name.isdigit()]) < 6
    os.kill(child, signal.SIGKILL)
    os.waitpid(child, 0)
    assert os.read(said, 1) == b""  # nobody holds the pipe any more
    os.close(said)


def test_a_result_of_an_earlier_text_gives_way(tmp_path: Path) -> None:
    def result(name: str, line: str) -> dict[str, Any]:
        change = {"path": "a.py", "text": line, "before": "1", "after": "2"}
        return {"id": name, "area": "a", "seen": False, "why": "", "line": 7} | change

    results = Results(tmp_path / "results.json")
    for name, line in (("old", "x = 1"), ("new", "x = 1"), ("other", "y = 1")):
        results.add(result(name, line))
    results.forget_earlier([result("new", "x = 1")])
    kept = Results(tmp_path / "results.json")
    assert [kept[name] is not None for name in ("old", "new", "other")] == [False, True, True]
