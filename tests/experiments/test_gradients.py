"""The comparison of gradients, on operators that take no time; what a GPU is given, emulated."""

import json
import re
from dataclasses import replace

import ml_dtypes
import numpy as np
import pytest
import torch

from experiments.gradients.__main__ import main
from experiments.gradients.gpu import backward, known_of
from experiments.gradients.gpu_cases import GPU_CASES
from experiments.models.choosing import build
from tilewright.measure.cuda.emulator import Emulator
from tilewright.spaces.operators import as_workload
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.gradients import gradient

TARGET = detect_target("cuda:sm_90a")


def test_a_comparison_writes_its_results(tmp_path, capsys):
    out = tmp_path / "results.json"
    names = ["softmax", "product, gelu", "attention, causal"]
    names += ["convolution depthwise, by the filter"]
    main(["--only", *names, "--seconds", "0", "--rounds", "3", "--small", "--out", str(out)])
    made = json.loads(out.read_text())["cases"]
    assert [*made] == names
    assert all(case["seconds"].keys() == {"own", "torch"} for case in made.values())
    assert "softmax" in capsys.readouterr().out


def test_a_case_that_is_not_there_is_refused_in_a_line(capsys):
    with pytest.raises(SystemExit):
        main(["--target", "cuda", "--only", "convolution"])
    assert "no case 'convolution'; allowed: attention 1024 x 64" in capsys.readouterr().err


@pytest.mark.parametrize("name", ["attention 1024 x 64, causal", "layernorm", "cross_entropy"])
def test_what_a_gpu_is_given_has_the_derivatives_that_are_said(name):
    operator = re.sub(r"\b([bhijrc])=(\d\d?)\d*", r"\1=\2", GPU_CASES[name].operator)
    case = replace(GPU_CASES[name], operator=operator)
    work = as_workload(gradient(operator, case.wrt, saved=case.saved))
    operands, drawn = _drawn(as_workload(operator), 0), _drawn(work, 1)
    tensors, exact = known_of(case, operands, drawn)
    assert [*tensors] == [array.name for array in work.inputs]
    (built,) = build(work, TARGET, (), 1, 1)
    kernel = built.candidate.kernel
    with Emulator() as emulator:
        found = emulator.run(kernel, {n: _array(tensor) for n, tensor in tensors.items()})
    assert found.error_kind is None, found.error_text
    for wrt, wanted in zip(case.wrt, exact, strict=True):
        allowed = 0.05 * float(wanted.abs().mean())
        derivative = found.outputs[f"d{wrt}"].astype("f8")
        np.testing.assert_allclose(derivative, wanted.numpy(), rtol=2**-6, atol=allowed)
    if "torch" in case.rivals and "norm" not in name:
        call = backward(case, case.rivals["torch"], operands, tensors)
        for by_torch, wanted in zip(call(), exact, strict=True):
            assert float((by_torch.double() - wanted).abs().max()) < 0.05


def _drawn(work, seed):
    generator = torch.Generator().manual_seed(seed)
    found = {}
    for array in work.inputs:
        if array.dtype == "int32":
            found[array.name] = torch.randint(10, array.shape, generator=generator).int()
        else:
            values = torch.rand(array.shape, generator=generator) * 2 - 1
            found[array.name] = values.to(getattr(torch, array.dtype))
    return found


def _array(tensor):
    if tensor.dtype != torch.bfloat16:
        return tensor.numpy()
    return tensor.view(torch.int16).numpy().view(ml_dtypes.bfloat16)
