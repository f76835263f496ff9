"""Packages run where there is neither a compiler nor a database."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest
import torch
from torch import nn

from tests.scheduler.torch.models import Mlp
from tilewright import InputError, load_package, package
from tilewright.scheduler.torch.kernels.functions import functions
from tilewright.scheduler.torch.serving import shipping

SERVE = """
import json, sys, warnings
import torch
from tilewright import load_package
from tilewright.scheduler.torch.kernels.functions import functions

torch.set_num_threads(1)
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    model = load_package(sys.argv[1])
    found = [model(torch.load("x.pt")) for _ in range(2)][-1]
torch.save(found, "found.pt")
kernels = [type(f).__name__ for f in functions._made.values()]
print(json.dumps({"kernels": kernels, "warned": [str(w.message) for w in seen]}))
"""


@pytest.fixture(scope="module")
def packaged(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a package, an input and what the model makes of it."""
    folder = tmp_path_factory.mktemp("package")
    torch.manual_seed(0)
    model, x = Mlp().eval(), torch.randn(5, 32)
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.no_grad():
            exported = torch.export.export(model, (x,))
            told = package(exported, folder / "model.pt2", {"judge": "always", "db": None})
            torch.save(model(x), folder / "wanted.pt")
    finally:
        torch.set_num_threads(before)
    (graph,) = told.graphs
    assert sum(region.by == "tilewright" for region in graph.regions) == 3
    torch.save(x, folder / "x.pt")
    return folder


def served(folder: Path) -> dict[str, list[str]]:
    """What a fresh process says that has no compiler, no database, and nothing in its caches."""
    empty = folder / "empty"
    empty.mkdir(exist_ok=True)
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    variables = {"PATH": str(empty), "XDG_CACHE_HOME": str(empty), "HOME": str(empty)} | path
    done = subprocess.run(
        [sys.executable, "-c", SERVE, "model.pt2"],
        cwd=folder,
        env=variables,
        capture_output=True,
        text=True,
        check=False,
    )
    assert not done.returncode, done.stderr
    torch.testing.assert_close(
        torch.load(folder / "found.pt"), torch.load(folder / "wanted.pt"), rtol=1e-5, atol=1e-5
    )
    told: dict[str, list[str]] = json.loads(done.stdout.splitlines()[-1])
    return told


@pytest.mark.slow
def test_a_fresh_process_runs_the_kernels_of_a_package(packaged: Path) -> None:
    told = served(packaged)
    assert not [words for words in told["warned"] if "kernel" in words]
    assert told["kernels"] == ["ShippedFunction"] * 3


def test_kernels_for_another_processor_are_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(functions, "_offered", {})
    told = {"format": 1, "cpu_flags": ["made_up"], "pool": "", "kernels": [{"key": "k"}]}
    shipping.take(json.dumps(told))
    assert functions._offered == {}


@pytest.mark.parametrize(
    ("table", "words"),
    [
        ("no table", "a malformed table of kernels: JSONDecodeError"),
        ('{"format": 1}', "a malformed table of kernels: KeyError"),
        ('{"format": 7, "cpu_flags": [], "kernels": []}', "kernels in format 7; allowed: 1"),
    ],
)
def test_a_malformed_table_is_one_line(table: str, words: str) -> None:
    with pytest.raises(InputError) as caught:
        shipping.take(table)
    assert str(caught.value) == words


def test_what_is_no_package_is_one_line(tmp_path: Path) -> None:
    exported = torch.export.export(nn.ReLU(), (torch.ones(3),))
    (tmp_path / "no.pt2").write_text("no package")
    for call, words in (
        (lambda: package(exported, tmp_path / "model.zip"), "allowed: a file that ends in .pt2"),
        (lambda: package(exported, tmp_path / "m.pt2", {"judge": 3}), "allowed: measure, always"),
        (lambda: load_package(tmp_path / "none.pt2"), "there is no package at"),
        (lambda: load_package(tmp_path / "no.pt2"), "is no package of tilewright.package"),
        (lambda: load_package(tmp_path / "no.pt2", build="soon"), "allowed: never, background"),
    ):
        with pytest.raises(InputError, match=words) as caught:
            call()
        assert "\n" not in str(caught.value)
