"""Programs are tuned, queried, called, stored, handed on and trained on, as products are."""

from __future__ import annotations

import json
from dataclasses import dataclass

import numpy as np
import pytest

from tests.scheduler.cli.command import ask
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.best import best
from tilewright.scheduler.cli.app import run
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import workload

Words = tuple[str, ...]


@dataclass(frozen=True)
class Case:
    """A program on a command line, the same one in other words, and one of another size."""

    words: Words
    same: Words
    wider: Words
    trials: int

    def work(self, words: Words):
        operator, *sizes = words
        return workload(operator, **dict(size.split("=", 1) for size in sizes))


OWN = "y[r,c] = softmax[c](x[r,c] * b[c])\ni[r] = argmax[c](x[r,c])\n-> y, i"
OTHER_NAMES = (
    "place[s] = argmax[j](given[s,j])\nfound[s,j] = softmax[j](bias[j] * given[s,j])\n"
    "-> found, place\n"
    "given: float32[30,50]\nbias: float32[50]"
)
SPELT_OUT = (
    "e[a,b] = exp(x[a,b] - max[b](x[a,b]))\ny[a,b] = e[a,b] / sum[b](e[a,b])\nx: float32[512,1024]"
)
WINDOWS = (
    "x: float32[1,3,9,11]\n"
    "s[n,a,i,j] = sum[d,k,l](inside(x[n, d, 2*i + k - 1, 2*j + l - 1], 0) * f[a,d,k,l])\n"
    "y[n,a,i,j] = relu(s[n,a,i,j] + b[a])"
)
LAYER = ("conv2d", "n=1", "c=3", "h=9", "o=10", "r=3", "s=3", "stride=2", "padding=1")
FUSED = "epilogue=relu(x + bias[o])"
CASES = [
    pytest.param(
        Case(
            (*LAYER, "w=11", FUSED),
            (WINDOWS, "n=1", "a=10", "i=5", "j=6", "d=3", "k=3", "l=3"),
            (*LAYER, "w=21", FUSED),
            12,
        ),
        id="convolution",
        marks=pytest.mark.slow,
    ),
    pytest.param(
        Case((OWN, "r=30", "c=50"), (OTHER_NAMES, "s=30", "j=50"), (OWN, "r=30", "c=60"), 10),
        id="own",
    ),
    pytest.param(
        Case(
            ("softmax", "r=512", "c=1024"),
            (SPELT_OUT, "a=512", "b=1024"),
            ("softmax", "r=512", "c=2000"),
            16,
        ),
        id="softmax",
        marks=pytest.mark.slow,
    ),
]


@pytest.fixture(scope="module", params=CASES)
def case(request):
    return request.param


@pytest.fixture(scope="module")
def folder(case, tmp_path_factory):
    """With ``tuning.db``, in which the program was tuned."""
    made = tmp_path_factory.mktemp("tuned")
    options = ("--trials", str(case.trials), "--db", str(made / "tuning.db"), "--quiet")
    assert run(["tune", *case.words, *options]) == 0
    return made


@pytest.fixture
def here(folder, monkeypatch):
    monkeypatch.chdir(folder)
    return folder


def answer(capsys, words, *options):
    return json.loads(ask(capsys, "query", *words, "--format", "json", *options))


def test_what_was_tuned_is_answered_under_any_names(case, here, capsys):
    found = answer(capsys, case.words)
    assert found["provenance"] == "measured"
    assert found["trials"] == case.trials
    assert answer(capsys, case.same)["schedule"] == found["schedule"]
    assert answer(capsys, case.wider)["provenance"] == "transferred"
    assert str(case.work(case.words)) in ask(capsys, "list")


def test_it_is_handed_on_by_a_file(case, here, capsys):
    ask(capsys, "export", "all.jsonl")
    assert "new records" in ask(capsys, "import", "all.jsonl", "--db", "other.db")
    assert answer(capsys, case.words, "--db", "other.db") == answer(capsys, case.words)
    ask(capsys, "export", "all.csv", "--format", "csv", "--features")
    table = (here / "all.csv").read_text()
    assert "feature.workload" in table.splitlines()[0]


def test_a_model_is_trained_on_it_and_ranks_another_size(case, here, capsys):
    ask(capsys, "train", "--out", "model.json")
    found = answer(capsys, case.wider, "--db", "empty.db", "--model", "model.json")
    assert found["provenance"] == "predicted"


@pytest.mark.parametrize("words", ["words", "same", "wider"])
def test_the_best_is_a_function_that_is_checked(case, here, words):
    work = case.work(getattr(case, words))
    function = best(work, database="tuning.db", verify=True)
    known = Provenance.TRANSFERRED if words == "wider" else Provenance.MEASURED
    assert function.provenance == known
    inputs = work.make_inputs(5)
    found = function(**inputs)
    exact = evaluate(work.program, inputs)
    arrays = found if isinstance(found, tuple) else (found,)
    for output, array in zip(work.outputs, arrays, strict=True):
        np.testing.assert_allclose(array, exact[output.name], rtol=1e-4, atol=1e-6)


def test_random_schedules_are_verified(case, here, capsys):
    asked = ask(capsys, "verify", *case.words, "--schedules", "6", "--format", "json")
    assert '"wrong": 0' in asked


def test_what_cannot_be_verified_is_refused_before_anything_is_measured(capsys, tmp_path):
    options = ("--trials", "2", "--db", str(tmp_path / "none.db"))
    assert run(["tune", "y[r] = x[r] - x[r]", "r=40", *options]) == 2
    assert "cannot be verified: whatever its inputs" in capsys.readouterr().err
