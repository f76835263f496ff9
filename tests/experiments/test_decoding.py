"""The block that decodes: each sequence is computed by itself, with its own cache."""

from __future__ import annotations

import pytest
import torch

from experiments.decoding import __main__ as decoding


def test_sequences_do_not_mix() -> None:
    torch.manual_seed(0)
    block = decoding.Block(64, 4, 2, 96, length=10, sequences=5).eval()
    layers = decoding.Layers(block, 3)
    x = torch.randn(5, 64)
    with torch.no_grad():
        whole = layers(x)
        assert torch.allclose(layers(x[:3]), whole[:3], atol=1e-5)
        block.keys[4].neg_()
        changed = layers(x)
    assert torch.equal(changed[:4], whole[:4])
    assert not torch.allclose(changed[4], whole[4])


@pytest.mark.skipif(torch.cuda.is_available(), reason="a GPU is here")
def test_a_gpu_is_needed(capsys) -> None:
    with pytest.raises(SystemExit) as end:
        decoding.main([])
    assert end.value.code == 2
    assert "a GPU is needed, and torch finds none" in capsys.readouterr().err
