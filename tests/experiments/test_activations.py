"""Bytes that layers keep for their backward pass, and errors of solving for an input."""

import json

import pytest
import torch

from experiments.activations.__main__ import main
from experiments.activations.inverting import errors


@pytest.mark.slow
def test_a_layer_in_half_of_the_memory(tmp_path, capsys):
    before = torch.get_num_threads()
    out = tmp_path / "results.json"
    given = ["--small", "--only", "BERT-Large", "--share", "0.5", "--rounds", "3"]
    main([*given, "--judge", "always", "--out", str(out)])
    torch.set_num_threads(before)
    found = json.loads(out.read_text())["cases"]["BERT-Large"]
    assert [*found] == ["eager", "inductor", "tilewright 0.5"]
    own = found["tilewright 0.5"]
    assert own["of_eager"] <= 0.51
    assert own["kept_bytes"] < found["inductor"]["kept_bytes"]
    assert own["gradients_apart"] < 1e-4
    assert {*own["graphs"]} == {"forward", "backward"}
    assert all(graph["regions"][0] > 3 for graph in own["graphs"].values())
    assert capsys.readouterr().out.count("of eager's") == 3


def test_what_solving_for_an_input_loses():
    """A norm loses the rounding of what is kept; an activation far more where it turns."""
    found = errors(points=50_000)
    assert found["layernorm, float32"]["dx of y"] < 1e-6
    assert found["layernorm, bfloat16"]["dx of y"] < 1e-3
    for name in ("gelu", "silu"):
        own = found[f"{name}, float32"]
        assert 100 < own["most"] / own["rounding"] < 2000
        assert own["share over 4 roundings"] < 0.02
