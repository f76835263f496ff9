"""The comparison of compiled blocks: blocks run, and processes take turns."""

from __future__ import annotations

import json

import pytest
import torch

from experiments.compiled_models import __main__ as comparison
from experiments.compiled_models.blocks import BLOCKS, make
from experiments.compiled_models.child import gradients


@pytest.mark.parametrize("name", BLOCKS)
def test_a_block_is_the_same_each_time(name: str) -> None:
    with torch.device("meta"):
        block = BLOCKS[name][0]()
    assert sum(parameter.numel() for parameter in block.parameters()) > 50_000
    if name in ("gpt2-1", "resnet-56"):
        with torch.no_grad():
            (one, inputs), (other, _) = make(name), make(name)
            assert torch.equal(one(*inputs), other(*inputs))


@pytest.mark.parametrize("more", [[], ["--training"]])
def test_processes_take_turns_and_are_compared_with_eager(more, tmp_path, capsys) -> None:
    out = tmp_path / "results.json"
    words = ["--only", "gpt2-1", "--ways", "eager", "--rounds", "3", "--out", str(out), *more]
    comparison.main(words)
    found = json.loads(out.read_text())
    assert found["blocks"]["gpt2-1"]["eager"]["over_eager"] == 1.0
    assert found["blocks"]["gpt2-1"]["eager"]["error"] == 0.0
    assert "of eager (1.000 to 1.000)" in capsys.readouterr().out


def test_gradients_are_those_of_a_loss_by_input_and_parameters() -> None:
    module, x = torch.nn.Linear(5, 3), torch.randn(4, 5)
    found = gradients(module, module, (x,))
    given = x.clone().requires_grad_()
    module(given).square().mean().backward()
    for own, wanted in zip(found, (given, module.weight, module.bias), strict=True):
        assert torch.equal(own, wanted.grad)


@pytest.mark.parametrize("words", [["--ways", "freezing"], ["--ways", "eager", "--device", "cuda"]])
def test_weights_in_training_are_no_constants_and_times_are_those_of_a_cpu(words, capsys) -> None:
    with pytest.raises(SystemExit, match="2"):
        comparison.main(["--training", *words])
    assert "allowed: cpu, eager, inductor, tilewright" in capsys.readouterr().err
