"""The package ``tilewright``: what users import, also beside modules named as ours."""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import tilewright
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.measure.testing.made_up import attempt, measured
from tilewright.spaces.cpu.template import CpuTemplate
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

ROOT = Path(__file__).parents[2]
PATHS = os.pathsep.join(map(str, (ROOT, ROOT / "scheduler/face")))
PACKAGES = ("spaces", "measure", "costmodel", "scheduler")


def python(*arguments: str, cwd: Path, path: str = PATHS) -> subprocess.CompletedProcess[str]:
    environment = os.environ | {"PYTHONPATH": path}
    command = [sys.executable, *arguments]
    return subprocess.run(command, env=environment, cwd=cwd, capture_output=True, text=True)


@pytest.fixture
def here(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    return tmp_path


@pytest.fixture
def clash(tmp_path):
    """A user's folder with modules named as ours."""
    for name in PACKAGES:
        (tmp_path / f"{name}.py").write_text("raise SystemExit('the user\\'s own module')\n")
    return tmp_path


def test_everything_named_is_there():
    for name in tilewright.__all__:
        assert getattr(tilewright, name) is not None
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = tilewright.nonsense


FEW = "import sys, tilewright; tilewright.tune('matmul m=8 n=8 k=8', trials={}, database='t.db')"


@pytest.mark.parametrize(("trials", "loaded"), [(2, False), (8, True)])
def test_xgboost_is_loaded_where_a_model_learns(trials, loaded, tmp_path):
    text = f"{FEW.format(trials)}; print('xgboost' in sys.modules)"
    done = python("-c", text, cwd=tmp_path)
    assert done.stdout.splitlines()[-1:] == [str(loaded)], done.stderr


def test_importing_it_loads_no_heavy_library(tmp_path):
    heavy = "{'torch', 'ray', 'cuda', 'xgboost', 'sqlalchemy', 'alembic', 'pandas', 'matplotlib'}"
    done = python("-c", f"import sys, tilewright; print({heavy} & set(sys.modules))", cwd=tmp_path)
    assert (done.stdout, done.stderr) == ("set()\n", "")


def test_what_is_imported_is_loaded_when_it_is_asked_for(tmp_path):
    templates = "('tilewright.spaces.cpu.blocked.template', 'tilewright.spaces.cuda.simt.template')"
    program = (
        "import sys, tilewright; print([t in sys.modules for t in {0}]); "
        "from tilewright import *; query('matmul m=8 n=8 k=8'); print(tilewright.best.__module__, "
        "sorted(set(tilewright.__all__) - set(dir(tilewright))), [t in sys.modules for t in {0}])"
    )
    done = python("-c", program.format(templates), cwd=tmp_path)
    expected = "[False, False]\ntilewright.scheduler.best [] [True, False]\n"
    assert done.stdout == expected, done.stderr


def test_listing_what_is_known_loads_only_what_that_takes(tmp_path):
    with Database(tmp_path / "tuning.db") as database:
        database.record(attempt(measured(1, 1.0)))
    program = (
        "import sys; from tilewright.scheduler.cli.app import run; code = run(['list']); "
        "print([name for name in ('alembic', 'rich', 'numpy', 'scipy', 'xgboost', 'psycopg', "
        "'tilewright.spaces.operators', "
        "'tilewright.spaces.cpu.blocked.template', 'tilewright.spaces.cuda.simt.template', "
        "'tilewright.measure.executor', "
        "'sqlalchemy.dialects.postgresql', 'tilewright.scheduler.cli.commands.tune') "
        "if name in sys.modules]); sys.exit(code)"
    )
    done = python("-c", program, cwd=tmp_path)
    assert (done.returncode, done.stdout.splitlines()[-1]) == (0, "[]"), done.stderr


LOADED = """
import sys
from tilewright.scheduler.cli.app import run

code = run(["query", "matmul", "m=8", "n=8", "k=8", "--db", sys.argv[1]])
heavy = {"alembic", "rich", "scipy", "xgboost", "psycopg", "torch", "ray", "sqlalchemy",
         "sqlalchemy.dialects.postgresql", "tilewright.scheduler.functions.source"}
ours = (name for name in sys.modules if name.startswith("tilewright.spaces.c"))
heavy |= {name for name in ours if name.endswith(sys.argv[2]) or ".cuda." in name}
print(sorted(heavy & set(sys.modules)))
sys.exit(code)
"""
"""Prints what a query of a database loads that takes long, and modules of a name."""


def test_a_query_loads_only_what_that_takes(tmp_path):
    with Database(tmp_path / "tuning.db") as database:
        database.record(attempt(measured(1, 1.0)))
    for name, loaded in {"tuning.db": ["sqlalchemy"], "no.db": []}.items():
        done = python("-c", LOADED, name, ".code", cwd=tmp_path)
        assert (done.returncode, done.stdout.splitlines()[-1]) == (0, str(loaded)), done.stderr


def test_a_measured_answer_loads_one_template_and_no_sqlalchemy(tmp_path):
    space = space_for(workload("matmul m=8 n=8 k=8"), detect_target("cpu"))
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    attempted = Measurement(schedule, Status.OK, 1.0)
    version = space.version_of(schedule)
    with Database(tmp_path / "tuning.db") as database:
        database.record(Record(space.workload, space.target, version, attempted))
    done = python("-c", LOADED, "tuning.db", ".template", cwd=tmp_path)
    *said, loaded = done.stdout.splitlines()
    assert (done.returncode, done.stderr) == (0, "")
    assert "measured" in " ".join(said)
    own = type(space.templates[schedule.template]).__module__
    assert loaded == str([CpuTemplate.__module__, own])


def test_tuning_for_a_cpu_loads_no_code_for_gpus(tmp_path):
    program = (
        "import sys; from tilewright.scheduler.tuning.tuner import tune; "
        "print([name for name in sys.modules if name.startswith(('tilewright.spaces.cuda', "
        "'tilewright.measure.cuda.')) and not name.endswith('.heating')])"
    )
    done = python("-c", program, cwd=tmp_path)
    assert done.stdout == "[]\n", done.stderr


def test_modules_of_the_user_do_not_hide_ours(clash):
    done = python("-m", "tilewright", "query", "matmul", "m=8", "n=8", "k=8", cwd=clash)
    assert (done.returncode, "predicted" in done.stdout) == (0, True), done.stderr
    script = clash / "script.py"
    script.write_text("from tilewright import query, workload\nprint(query.__module__)\n")
    assert python(str(script), cwd=clash).stdout == "tilewright.scheduler.query\n"


def test_modules_of_the_user_stay_theirs(clash):
    for name in PACKAGES:
        (clash / f"{name}.py").write_text("MINE = True\n")
    script = f"import {', '.join(PACKAGES)}; from tilewright import query; print(measure.MINE)"
    done = python("-c", script, cwd=clash, path=str(ROOT / "scheduler/face"))
    assert (done.returncode, done.stdout) == (0, "True\n"), done.stderr


def test_every_package_says_what_it_is_for():
    folders = {path.parent for name in PACKAGES for path in (ROOT / name).rglob("*.py")}
    for folder in folders:
        if folder.name == "face":
            continue
        text = ast.get_docstring(ast.parse((folder / "__init__.py").read_text()))
        assert text, folder
        assert text.split("\n\n")[0].endswith((".", "``.")), folder


WORK = "matmul m=8 n=8 k=8"


BAD_QUESTIONS = [
    ({"workload": 8}, "8 is no operator"),
    ({"workload": "matmul m=8 n=8"}, "missing: k"),
    ({"target": "tpu"}, "unknown target 'tpu'"),
    ({"target": 3}, "unknown target 3"),
    ({"database": 3}, "3 is no database"),
]
BAD_BUDGETS = [
    ({"trials": "8"}, "trials='8' is no whole number"),
    ({"trials": 1.5}, "trials=1.5 is no whole number"),
    ({"trials": 0}, "trials=0 is out of range"),
    ({"seconds": float("inf")}, "seconds=inf is out of range"),
    ({"seconds": float("nan")}, "seconds=nan is out of range"),
    ({"seconds": "60"}, "seconds='60' is no number"),
    ({"patience": 0.5}, "patience=0.5 is no whole number"),
    ({"seed": -1}, "seed=-1 is out of range"),
    ({"search": ["random"]}, "unknown search ['random']; allowed: evolutionary"),
    ({"target": "cuda:sm_80"}, "GPU"),
]


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        *((name, *case) for name in ("tune", "query", "best") for case in BAD_QUESTIONS),
        *(("tune", *case) for case in BAD_BUDGETS),
    ],
)
def test_what_is_wrong_with_a_call_is_one_sentence(here, name, wrong, says):
    with pytest.raises(tilewright.InputError) as caught:
        getattr(tilewright, name)(**{"workload": WORK, "database": "x.db"} | wrong)
    assert says in str(caught.value)
    assert "\n" not in str(caught.value)
    assert list(here.iterdir()) == []


def test_numbers_of_numpy_will_do_for_numbers(here):
    three, seconds = np.int64(3), np.float32(600)
    numbers = {"trials": three, "patience": three, "seed": three, "seconds": seconds}
    assert tilewright.tune(WORK, database="x.db", **numbers).trials == 3


def test_text_will_do_for_everything(here):
    result = tilewright.tune(WORK, "cpu", "x.db", trials=4, seconds=600)
    answer = tilewright.query(f"{result.workload}", database="x.db")
    assert (answer.provenance, answer.schedule) == ("measured", result.best.schedule)
    assert tilewright.best(WORK, database="x.db").schedule == answer.schedule


def test_the_version_is_printed_without_the_libraries_of_commands(tmp_path):
    program = (
        "import sys; from tilewright.scheduler.cli import main; sys.argv[1:] = ['--version']\n"
        "try: main()\n"
        "except SystemExit as end: print(end.code)\n"
        "print([name for name in ('typer', 'numpy', 'sqlalchemy', 'rich') if name in sys.modules])"
    )
    done = python("-c", program, cwd=tmp_path)
    assert done.stdout == f"tilewright {tilewright.__version__}\n0\n[]\n", done.stderr
