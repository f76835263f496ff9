"""The experiment with operators over ranges of entries, at sizes that take no time."""

from __future__ import annotations

import json
from dataclasses import replace

import numpy as np
import pytest

from experiments.ragged.__main__ import main
from experiments.ragged.cases import CASES
from experiments.ragged.gpu_cases import GPU_CASES
from tilewright import program
from tilewright.spaces.cuda.ragged.template import CudaRagged
from tilewright.spaces.cuda.target import cuda_target
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.workloads.served import workload_of


def test_cases_are_compared_and_written(tmp_path):
    chosen = [
        "weighted 170k x 32",
        "mean 170k x 128",
        "scores 170k x 128",
        "attention 170k x 128",
        "linear 80 % x 8",
    ]
    out = tmp_path / "found.json"
    words = ["--small", "--seconds", "0", "--rounds", "2", "--out", str(out), "--only", *chosen]
    main(words)
    found = json.loads(out.read_text())["cases"]
    assert set(found) == set(chosen) <= set(CASES)
    for own in found.values():
        assert own["ratio"] > 0
        assert own["schedule"].startswith("ragged")


@pytest.mark.parametrize("name", GPU_CASES)
def test_what_a_gpu_is_given_is_what_its_rivals_compute(name):
    small = replace(GPU_CASES[name], rows=40, entries=320, width=8)
    made, given = program(small.text, **small.extents), small.tensors("cpu")
    inputs = {n: (t.double() if t.is_floating_point() else t).numpy() for n, t in given.items()}
    (found,) = evaluate(made, inputs).values()
    np.testing.assert_allclose(small.exact(given).numpy(), found, rtol=1e-9)
    whole = workload_of(program(GPU_CASES[name].text, **GPU_CASES[name].extents))
    assert CudaRagged.why_not(whole, cuda_target("sm_90a")) is None


def test_an_unknown_case_is_refused(capsys):
    with pytest.raises(SystemExit):
        main(["--target", "cuda", "--only", "weighted"])
    assert "there is no case 'weighted'" in capsys.readouterr().err
