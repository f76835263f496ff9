"""Checkpoints of quantised models, rewritten with packed codes: layer by layer, exactly.

Such a checkpoint is a folder as Hugging Face has it, whose ``config.json`` says how GPTQ or AWQ
quantised the model. Each ``NAME.qweight`` becomes ``NAME.codes``, packed bytes, and ``NAME.qzeros``
becomes ``NAME.zeros``, the zero points ``[groups, rows]`` as uint8. ``NAME.scales`` stay, and so do
all other tensors.
"""

from __future__ import annotations

import json
import shutil
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from tilewright.scheduler.extras import extra
from tilewright.spaces.errors import InputError, shown
from tilewright.spaces.low_bit.layouts import codes_in, zeros_in
from tilewright.spaces.low_bit.packing import pack_codes
from tilewright.spaces.validation.files import make_folder

CONFIG, INDEX = "config.json", "model.safetensors.index.json"
METHODS = ("gptq", "awq")
WEIGHT, ZEROS, PLACES = ".qweight", ".qzeros", ".g_idx"


@dataclass(frozen=True)
class Quantisation:
    """The way in which a model was quantised. ``plus`` is what its files leave out of zero points;
    ``group`` neighbours along the depth have one of them and one scale, all where it is -1."""

    method: str
    bits: int
    group: int
    plus: int


@dataclass(frozen=True)
class PackedLayer:
    """A matrix of a model that was packed; ``group`` neighbours of the depth share a scale."""

    name: str
    dtype: str
    rows: int
    depth: int
    group: int
    bytes: int


def pack_checkpoint(model: Path, out: Path) -> Iterator[PackedLayer]:
    """Write a checkpoint with packed codes to the new folder ``out``; yield each layer once it is
    packed. Raises :class:`InputError` for what is no such checkpoint."""
    how = quantisation_of(model)
    files = sorted(model.glob("*.safetensors"))
    if not files:
        raise InputError(f"no file in {shown(str(model))} is called *.safetensors")
    if out.exists() and (not out.is_dir() or any(out.iterdir())):
        raise InputError(f"{shown(str(out))} is there and not empty; allowed: a new folder")
    extra("torch", "models", "packing a checkpoint")
    extra("safetensors", "models", "packing a checkpoint")
    make_folder(out)
    index, size = dict[str, str](), 0
    for file in files:
        size += yield from _packed_file(file, out / file.name, how, index)
    _copy_others(model, out, how)
    if (model / INDEX).exists():
        written = {"metadata": {"total_size": size}, "weight_map": index}
        (out / INDEX).write_text(json.dumps(written, indent=1) + "\n")


def quantisation_of(model: Path) -> Quantisation:
    """Return how a model was quantised, by its ``config.json``."""
    found = _config(model).get("quantization_config")
    if not isinstance(found, Mapping) or found.get("quant_method") not in METHODS:
        method = found.get("quant_method") if isinstance(found, Mapping) else None
        allowed = f"a quant_method of {' or '.join(METHODS)}"
        raise InputError(f"{shown(str(model / CONFIG))} says {shown(method)}; allowed: {allowed}")
    method, bits, group = found["quant_method"], found.get("bits"), found.get("group_size", -1)
    layout = found.get("checkpoint_format") or found.get("version") or method
    if type(bits) is not int or not 1 <= bits <= 8 or type(group) is not int:
        raise InputError(f"bits of {shown(bits)} in groups of {shown(group)}; allowed: 1 to 8 bits")
    if layout not in ("gptq", "gptq_v2", "awq", "gemm"):
        raise InputError(f"the format {shown(layout)} of weights; allowed: gptq, gptq_v2, gemm")
    return Quantisation(method, bits, group, plus=int(layout == "gptq"))


def _config(model: Path) -> dict[str, Any]:
    try:
        found = json.loads((model / CONFIG).read_text())
    except (OSError, ValueError) as error:
        raise InputError(f"cannot read {shown(str(model / CONFIG))}: {error}") from None
    if not isinstance(found, dict):
        raise InputError(f"{shown(str(model / CONFIG))} is no JSON object")
    return found


def _packed_file(file: Path, to: Path, how: Quantisation, index: dict[str, str]) -> Any:
    """Pack the layers of one file; return the bytes of its tensors."""
    from safetensors import SafetensorError, safe_open
    from safetensors.torch import save_file

    made, layers = dict[str, Any](), list[PackedLayer]()
    try:
        with safe_open(file, framework="pt") as source:
            names = set(source.keys())
            for name in sorted(names):
                layer = name.rpartition(".")[0]
                if name.endswith(WEIGHT):
                    found = _packed_layer(layer, source, names, how, made)
                    layers.append(found)
                    yield found
                elif not (name.endswith((ZEROS, PLACES)) and layer + WEIGHT in names):
                    made[name] = source.get_tensor(name)
    except SafetensorError as error:
        raise InputError(f"cannot read {shown(str(file))}: {error}") from None
    described = json.dumps({each.name: asdict(each) for each in layers})
    save_file(made, to, metadata={"format": "pt", "tilewright": described})
    index |= dict.fromkeys(made, file.name)
    return sum(tensor.numel() * tensor.element_size() for tensor in made.values())


def _packed_layer(
    name: str, source: Any, names: set[str], how: Quantisation, made: dict[str, Any]
) -> PackedLayer:
    """Add a layer's packed codes and its zero points to the tensors that are ``made``."""
    codes = codes_in(source.get_tensor(name + WEIGHT), how.method, how.bits)
    rows, depth = codes.shape
    group = depth if how.group == -1 else how.group
    if name + PLACES in names:
        _check_places(name, source.get_tensor(name + PLACES), group)
    dtype = f"uint{how.bits}"
    packed = made[f"{name}.codes"] = pack_codes(codes, dtype)
    if name + ZEROS in names:
        zeros = zeros_in(source.get_tensor(name + ZEROS), how.method, how.bits, how.plus)
        if tuple(zeros.shape) != (-(-depth // group), rows):
            wanted = [-(-depth // group), rows]
            raise InputError(f"{name}{ZEROS} of {list(zeros.shape)} zeros; allowed: {wanted}")
        made[f"{name}.zeros"] = zeros
    return PackedLayer(name, dtype, rows, depth, group, packed.numel())


def _check_places(name: str, places: Any, group: int) -> None:
    """Refuse a depth in another order than that of the activations."""
    usual = places.new_tensor(range(len(places))) // group
    if not (places == usual).all():
        allowed = "a checkpoint that was made with desc_act=false"
        raise InputError(f"{name}{PLACES} orders the depth anew; allowed: {allowed}")


def _copy_others(model: Path, out: Path, how: Quantisation) -> None:
    """Copy all other files of the model; its configuration says that codes are packed."""
    for file in sorted(model.iterdir()):
        if file.is_file() and file.suffix != ".safetensors" and file.name not in (CONFIG, INDEX):
            shutil.copyfile(file, out / file.name)
    described = {"quant_method": "tilewright", "bits": how.bits, "group_size": how.group}
    config = _config(model) | {"quantization_config": described}
    (out / CONFIG).write_text(json.dumps(config, indent=1) + "\n")
