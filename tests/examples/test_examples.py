"""Every example runs, with few trials, and stays short; every notebook runs from top to bottom."""

from __future__ import annotations

import ast
import json
import os
import re
import shlex
import subprocess
from pathlib import Path
from typing import Any

import pytest

from tests.covering import covering
from tests.forked import client
from tests.pages import ROOT, environment, used

FOLDER = ROOT / "examples"
PROGRAMS = sorted(FOLDER.glob("*.py"))
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))
NEEDS = {
    "cluster": ["ray"],
    "dataframe": ["pandas"],
    "plots": ["pandas", "matplotlib"],
    "read_a_run": ["pandas", "matplotlib"],
    "torch_model": ["torch"],
    "track_mlflow": ["mlflow"],
    "track_tensorboard": ["tensorboardX"],
    "track_wandb": ["wandb"],
}
LONG = {"cluster", "torch_model"}
"""Programs that start Ray or Inductor, for longer than all others take together: slow tests. What
they show of them is tested by default where it is: measure/cluster, scheduler/torch, docs."""
WRITES = {"plots": "course.svg", "cost_model": "model.json", "suite": "layers.toml"}
LONGEST = 85  # lines
SCRIPT = """\
import runpy, sys, warnings
warnings.filterwarnings("error", category=DeprecationWarning, module="__main__")
del sys.argv[0]
runpy.run_path(sys.argv[0], run_name="__main__")
"""
"""Runs the program of a file, which may use nothing that is to go."""


def cells(notebook: Path) -> list[dict]:
    """The cells of code, none of which has an output."""
    content = json.loads(notebook.read_text())
    assert (content["nbformat"], content["nbformat_minor"]) == (4, 5)
    return [cell for cell in content["cells"] if cell["cell_type"] == "code"]


def run(source: str, folder: Path, name: str) -> subprocess.CompletedProcess[str]:
    for module in NEEDS.get(name, ()):
        pytest.importorskip(module)
    place = folder / "place"
    place.mkdir()
    script = folder / f"{name}.py"
    script.write_text(source)
    few = {"TILEWRIGHT_EXAMPLE_TRIALS": "4", "MPLBACKEND": "agg"}
    variables = environment(folder) | few
    command = [*shlex.split(client()), "-c", SCRIPT, str(script)]
    done = subprocess.run(command, cwd=place, env=variables, capture_output=True, text=True)
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    assert "Traceback" not in done.stderr
    if name in WRITES:
        assert os.path.getsize(place / WRITES[name]) > 0
    assert done.stdout
    return done


def programs() -> list[Any]:
    """Mark programs: few show what all use, and the others are slow, as those that take long."""
    quick = covering(
        (path for path in PROGRAMS if path.stem not in LONG), lambda path: used(path.read_text())
    )
    return [
        *quick,
        *(pytest.param(path, marks=pytest.mark.slow) for path in PROGRAMS if path.stem in LONG),
    ]


@pytest.mark.timeout(300)
@pytest.mark.parametrize("program", programs(), ids=lambda path: path.stem)
def test_a_program_runs(program, tmp_path):
    run(program.read_text(), tmp_path, program.stem)


@pytest.mark.timeout(300)
@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_runs_cell_by_cell(notebook, tmp_path):
    found = ["".join(cell["source"]) for cell in cells(notebook)]
    run("\n\n".join(found), tmp_path, notebook.stem)


@pytest.mark.parametrize("notebook", NOTEBOOKS, ids=lambda path: path.stem)
def test_a_notebook_is_kept_without_outputs(notebook):
    for cell in cells(notebook):
        assert cell["outputs"] == []
        assert cell["execution_count"] is None
        ast.parse("".join(cell["source"]))


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda path: path.stem)
def test_a_program_is_short_and_says_what_it_shows(program):
    text = program.read_text()
    assert len(text.splitlines()) <= LONGEST
    assert ast.get_docstring(ast.parse(text)).split("\n")[0].endswith((".", ","))


def test_each_program_and_notebook_is_on_the_page():
    assert (len(PROGRAMS), len(NOTEBOOKS)) == (16, 2)
    named = re.findall(r"\]\(([^)]+)\)", (FOLDER / "README.md").read_text())
    assert sorted(named) == sorted(path.name for path in (*PROGRAMS, *NOTEBOOKS))
