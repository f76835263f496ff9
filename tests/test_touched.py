"""Tests of which test files a change touches."""

from __future__ import annotations

import subprocess
import sys

import pytest

from tests.touched import APART, MOST, ROOT, changed, imports, touched


@pytest.fixture(scope="module")
def known():
    return imports()


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("spaces/cuda/thin/template.py", "tests/spaces/cuda/thin/test_template.py"),
        ("spaces/algebra/mapping.py", "tests/spaces/algebra/test_mapping.py"),
        ("tests/spaces/index_programs.py", "tests/spaces/cpu/test_indices.py"),
        ("tests/test_touched.py", "tests/test_touched.py"),
    ],
)
def test_a_change_touches_what_mirrors_and_imports_it(path, expected, known):
    assert expected in touched([path], known)


def test_helpers_of_tests_hand_on_what_they_import():
    known = {
        "tests/a/helper.py": frozenset({"measure/x.py"}),
        "tests/b/test_user.py": frozenset({"tests/a/helper.py"}),
        "tests/b/test_other.py": frozenset({"measure/y.py"}),
    }
    assert touched(["measure/x.py"], known) == ["tests/b/test_user.py"]
    assert touched(["measure/z.py"], known) == []


def test_the_nearest_tests_come_first():
    known = {
        "tests/a/test_user.py": frozenset({"spaces/x/y.py"}),
        "tests/spaces/x/test_y.py": frozenset[str](),
        "tests/z/test_changed.py": frozenset[str](),
    }
    nearest = ["tests/z/test_changed.py", "tests/spaces/x/test_y.py", "tests/a/test_user.py"]
    assert touched(["spaces/x/y.py", "tests/z/test_changed.py"], known) == nearest


def test_tests_that_would_begin_too_late_are_skipped(tmp_path):
    (tmp_path / "conftest.py").write_text((ROOT / "tests/conftest.py").read_text())
    (tmp_path / "test_two.py").write_text("def test_a(): pass\ndef test_b(): pass\n")
    command = [sys.executable, "-m", "pytest", "-n", "0", "-rs", "-c", str(ROOT / "pyproject.toml")]
    for limit, counts in (("0", "2 skipped"), ("100", "2 passed")):
        done = subprocess.run(
            [*command, "--within", limit, str(tmp_path)], cwd=ROOT, capture_output=True, text=True
        )
        assert counts in done.stdout, done.stdout + done.stderr


def test_what_nearly_all_import_touches_its_own_folder_alone():
    users = {f"tests/b/test_{i}.py": frozenset({"spaces/a/x.py"}) for i in range(MOST + 1)}
    known = {**users, "tests/spaces/a/test_x.py": frozenset({"spaces/a/x.py"})}
    assert touched(["spaces/a/x.py"], known) == ["tests/spaces/a/test_x.py"]


def test_no_change_touches_tests_that_are_apart(known):
    product = [path.relative_to(ROOT).as_posix() for path in (ROOT / "measure").rglob("*.py")]
    found = touched(product, known)
    assert found
    assert not [path for path in found if path.startswith(APART)]


@pytest.fixture
def repository(tmp_path):
    """A repository with two committed files, and a function that runs git in it."""

    def git(*words: str) -> None:
        own = ["-c", "user.name=a", "-c", "user.email=a@b"]
        subprocess.run(["git", *own, *words], cwd=tmp_path, check=True, capture_output=True)

    git("init", "--initial-branch=main")
    for name in ("kept.py", "changed.py"):
        (tmp_path / name).write_text("1\n")
    git("add", ".")
    git("commit", "-m", "first")
    return tmp_path, git


def test_what_changed_is_committed_or_not_or_new(repository):
    folder, git = repository
    git("switch", "-c", "branch")
    (folder / "committed.py").write_text("2\n")
    git("add", ".")
    git("commit", "-m", "second")
    (folder / "changed.py").write_text("2\n")
    (folder / "new.py").write_text("2\n")
    assert sorted(changed("main", folder)) == ["changed.py", "committed.py", "new.py"]
    assert sorted(changed("HEAD", folder)) == ["changed.py", "new.py"]


def test_a_base_that_is_none_is_refused(repository):
    with pytest.raises(subprocess.CalledProcessError):
        changed("elsewhere", repository[0])
