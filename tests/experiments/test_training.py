"""A small language model learns by kernels what it learns in eager mode."""

import json

import pytest
import torch

from experiments.training.__main__ import main, most_apart
from experiments.training.model import Sizes, texts


@pytest.mark.slow
def test_losses_of_200_steps_are_those_of_eager(tmp_path, capsys):
    """All regions that kernels compute are theirs, forward and backward, for three seeds."""
    torch._dynamo.reset()
    before = torch.get_num_threads()
    out = tmp_path / "results.json"
    main(["--small", "--out", str(out)])
    torch.set_num_threads(before)
    found = json.loads(out.read_text())
    assert [*found["losses"]] == ["0", "1", "2"]
    assert most_apart(found["losses"]) < 2e-2
    for curves in found["losses"].values():
        assert len(curves["own"]) == 200
        assert sum(curves["own"][-20:]) < 0.7 * sum(curves["own"][:20])
    assert all(regions["tilewright"] >= 5 for regions in found["regions"].values())
    assert found["regions"].keys() == {"forward", "backward"}
    assert capsys.readouterr().out.count("from eager's") == 3


def test_texts_follow_their_rule_but_for_one_word_in_eight():
    sizes = Sizes()
    drawn = texts(sizes, 0, 0)
    assert drawn.shape == (sizes.texts, sizes.length + 1)
    follows = (3 * drawn[:, :-1] + 1) % sizes.words == drawn[:, 1:]
    assert 0.75 < float(follows.float().mean()) < 0.98
    assert torch.equal(drawn, texts(sizes, 0, 0))
    assert not torch.equal(drawn, texts(sizes, 0, 1))
