"""A wheel in an environment of its own: what a newcomer and mypy make of it."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.caches import warm_cache
from tests.pages import ROOT, quickly
from tests.release import newcomer

USER = """\
from typing import assert_type

import tilewright
from tilewright import Answer, TuningResult, best, program, query, tune

layer = program("y[i, j] = relu(sum[k](x[i, k] * w[k, j]))", i=8, j=8, k=8)
assert_type(layer, tilewright.Program)
result = tune(layer, "cpu", "tuning.db", trials=4, seconds=60)
assert_type(result, TuningResult)
assert_type(query(layer, "cpu", None), Answer)
fast = best(layer, "cpu", None)
reveal_type(fast)
tune(layer, trials="4")
"""
SETTINGS = """\
[mypy]
[mypy-alembic.*,cuda.*,matplotlib.*,pandas.*,pyarrow.*,ray.*,rich.*,scipy.*,sqlalchemy.*,torch.*,typer.*,xgboost.*]
follow_imports = skip
"""
"""No type of the face is one of these libraries, which take mypy longer than all else."""


@pytest.fixture(scope="module")
def home(tmp_path_factory) -> Path:
    """A folder with an environment ``env`` that has the wheel, and no headers of Python; what the
    wheel needs is borrowed."""
    folder = tmp_path_factory.mktemp("newcomer")
    (folder / "source").mkdir()
    wheel = newcomer.built_wheel(folder / "source")
    newcomer.run([sys.executable, "-m", "venv", "--without-pip", "env"], folder)
    newcomer.take_headers(folder)
    pip = [sys.executable, "-m", "pip", "--python", "env/bin/python", "install", "--quiet"]
    newcomer.run([*pip, "--no-deps", wheel], folder)
    [packages] = (folder / "env/lib").glob("python3*/site-packages")
    borrowed = [path for path in sys.path if path.endswith("site-packages")]
    warm_cache(folder / "cache", ["peaks"])
    (packages / "borrowed.pth").write_text("\n".join(borrowed) + "\n")
    return folder


def test_the_environment_has_the_wheel_and_nothing_of_the_checkout(home):
    script = "import sys, tilewright; print(tilewright.__file__, *sys.path, sep='\\n')"
    file, *paths = newcomer.run([home / "env/bin/python", "-c", script], home).splitlines()
    assert file.startswith(str(home / "env"))
    assert str(ROOT) not in paths


def test_the_wheel_has_one_package_with_types_suites_and_a_command(home):
    [packages] = (home / "env/lib").glob("python3*/site-packages")
    assert [path.parent.name for path in packages.glob("*/__init__.py")] == ["tilewright"]
    for name in (".", "spaces", "measure", "costmodel", "scheduler"):
        assert (packages / "tilewright" / name / "py.typed").is_file()
    suites = "from tilewright.scheduler.suites.suite import shipped_suites as s; print(s()[0])"
    assert newcomer.run([home / "env/bin/python", "-c", suites], home) == "bert-base\n"
    assert newcomer.run([home / "env/bin/tilewright", "--version"], home).split()[0] == "tilewright"


def test_the_environment_has_no_headers_of_python(home):
    script = "import sysconfig; print(sysconfig.get_path('include'))"
    folder = newcomer.run([home / "env/bin/python", "-c", script], home).strip()
    assert folder.startswith(str(home))
    assert not Path(folder, "Python.h").exists()


def test_the_text_of_the_readme_tunes_and_calls_an_operator_of_ones_own(home):
    program = newcomer.first_kernel()
    assert "program(" in program
    assert sum(newcomer.steps(program)) <= 10
    said = newcomer.run([home / "env/bin/python", "-c", quickly(program)], home)
    assert said.startswith("measured ")
    assert (home / "tuning.db").is_file()


def test_mypy_knows_the_types_of_the_face_and_refuses_a_wrong_call(home):
    (home / "user.py").write_text(USER)
    (home / "mypy.ini").write_text(SETTINGS)
    command = [sys.executable, "-m", "mypy", "--strict", "--config-file", "mypy.ini"]
    command += [
        "--python-executable",
        str(home / "env/bin/python"),
        "--cache-dir",
        str(home / "mypy"),
        "user.py",
    ]
    done = subprocess.run(command, cwd=home, capture_output=True, text=True)
    revealed, *errors, _ = done.stdout.splitlines()
    assert "CpuFunction" in revealed
    assert [line.split("error: ")[1].split('"')[1] for line in errors] == ["trials"], done.stdout


@pytest.mark.slow
@pytest.mark.timeout(900)
def test_a_newcomer_installs_what_it_takes_and_tunes(tmp_path, capsys):
    newcomer.play(sys.executable, tmp_path)
    said = capsys.readouterr().out
    assert said.startswith("measured ")
    assert int(said.split(" MB installed")[0].split()[-1]) < 400
