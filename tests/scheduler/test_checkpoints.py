"""Checkpoints with packed codes: made of small files in the layouts of GPTQ and AWQ."""

from __future__ import annotations

import json

import numpy as np
import pytest

from tests.scheduler.cli.command import ask
from tilewright import unpack
from tilewright.scheduler.checkpoints import pack_checkpoint
from tilewright.scheduler.cli.app import run
from tilewright.spaces.errors import InputError

torch = pytest.importorskip("torch")
safetensors = pytest.importorskip("safetensors.torch")

ROWS, DEPTH, GROUP = 32, 128, 64
AWQ_ROWS = (0, 2, 4, 6, 1, 3, 5, 7)


def words(codes: np.ndarray, order: tuple[int, ...] = tuple(range(8))) -> torch.Tensor:
    """Words of 8 codes that are neighbours along the last dimension."""
    parts = codes.reshape(*codes.shape[:-1], -1, 8).astype(np.uint32)
    found = sum(parts[..., each] << np.uint32(4 * place) for place, each in enumerate(order))
    return torch.from_numpy(np.ascontiguousarray(found).view(np.int32))


def write(folder, method="gptq", places=None, **config):
    """A model of one layer; its codes and zero points."""
    generator = np.random.default_rng(0)
    codes = generator.integers(0, 16, (ROWS, DEPTH))
    zeros = generator.integers(0, 15, (DEPTH // GROUP, ROWS))
    if method == "gptq":
        layer = {"qweight": words(codes).T.contiguous(), "qzeros": words(zeros)}
        layer["g_idx"] = torch.tensor(places or [k // GROUP for k in range(DEPTH)])
    else:
        layer = {"qweight": words(codes.T, AWQ_ROWS), "qzeros": words(zeros, AWQ_ROWS)}
    layer["scales"] = torch.rand(DEPTH // GROUP, ROWS).half()
    tensors = {f"layer.0.up.{name}": tensor for name, tensor in layer.items()}
    folder.mkdir(exist_ok=True)
    safetensors.save_file(tensors | {"norm.weight": torch.ones(3)}, folder / "model.safetensors")
    described = {"quant_method": method, "bits": 4, "group_size": GROUP} | config
    (folder / "config.json").write_text(json.dumps({"quantization_config": described}))
    (folder / "tokenizer.json").write_text("{}")
    return codes, zeros, layer["scales"]


@pytest.mark.parametrize("method", ["gptq", "awq"])
def test_codes_stay_what_they_are(method, tmp_path, capsys):
    codes, zeros, scales = write(tmp_path / "model", method)
    out = tmp_path / "packed"
    text = ask(capsys, "pack", str(tmp_path / "model"), "--out", str(out))
    assert f"{ROWS} x {DEPTH}" in text
    assert "layer.0.up" in text
    found = safetensors.load_file(out / "model.safetensors")
    assert set(found) == {
        "layer.0.up.codes", "layer.0.up.zeros", "layer.0.up.scales", "norm.weight"
    }  # fmt: skip
    assert (unpack(found["layer.0.up.codes"], ROWS, DEPTH, "uint4").numpy() == codes).all()
    assert (found["layer.0.up.zeros"].numpy() == zeros + (method == "gptq")).all()
    assert (found["layer.0.up.scales"] == scales).all()
    config = json.loads((out / "config.json").read_text())["quantization_config"]
    assert config == {"quant_method": "tilewright", "bits": 4, "group_size": GROUP}
    assert (out / "tokenizer.json").read_text() == "{}"


def test_an_index_names_the_new_tensors(tmp_path):
    write(tmp_path / "model")
    (tmp_path / "model/model.safetensors.index.json").write_text("{}")
    (layer,) = pack_checkpoint(tmp_path / "model", tmp_path / "out")
    assert (layer.dtype, layer.rows, layer.depth, layer.group) == ("uint4", ROWS, DEPTH, GROUP)
    index = json.loads((tmp_path / "out/model.safetensors.index.json").read_text())
    assert index["weight_map"]["layer.0.up.codes"] == "model.safetensors"


@pytest.mark.parametrize(
    ("changes", "said"),
    [
        ({"quant_method": "gguf"}, "says 'gguf'; allowed: a quant_method of gptq or awq"),
        ({"bits": 9}, "bits of 9 in groups of 64; allowed: 1 to 8 bits"),
        ({"checkpoint_format": "marlin"}, "the format 'marlin' of weights; allowed"),
        ({"group_size": 32}, "qzeros of .* allowed: "),
        ({"places": [0] * DEPTH}, "orders the depth anew; allowed: a checkpoint"),
    ],
)
def test_other_checkpoints_are_refused(changes, said, tmp_path):
    if changes == {"group_size": 32}:
        changes = changes | {"places": [k // 32 for k in range(DEPTH)]}
    write(tmp_path / "model", **changes)
    with pytest.raises(InputError, match=said) as raised:
        list(pack_checkpoint(tmp_path / "model", tmp_path / "out"))
    assert "\n" not in str(raised.value)


def test_what_is_no_checkpoint_is_one_line(tmp_path, capsys):
    assert run(["pack", str(tmp_path), "--out", str(tmp_path / "out")]) == 2
    assert capsys.readouterr().err.count("\n") == 1
    write(tmp_path / "model")
    (tmp_path / "model/model.safetensors").write_bytes(b"nothing")
    assert run(["pack", str(tmp_path / "model"), "--out", str(tmp_path / "out")]) == 2
    assert "cannot read" in capsys.readouterr().err
    assert run(["pack", str(tmp_path / "model"), "--out", str(tmp_path / "model")]) == 2
    assert "not empty; allowed: a new folder" in capsys.readouterr().err
