"""A frozen model is extracted as the backend computes it: weights packed, products joined."""

from __future__ import annotations

from collections.abc import Callable

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._inductor import config  # noqa: E402

from tests.scheduler.cli.command import ask  # noqa: E402
from tests.scheduler.torch import blocks  # noqa: E402
from tilewright import InputError, extract  # noqa: E402
from tilewright.scheduler.torch import backend  # noqa: E402
from tilewright.scheduler.torch.backend.choosing import Choosing  # noqa: E402
from tilewright.scheduler.torch.extraction.extraction import Extraction  # noqa: E402

Make = Callable[[], nn.Module]
MODELS = [lambda: blocks.Separate(32, (True, False, True)), lambda: blocks.Gated(24, 40)]


def inputs(model: nn.Module) -> torch.Tensor:
    return torch.randn(2, 5, next(model.parameters()).shape[1])


def asked(model: nn.Module, frozen: bool, monkeypatch: pytest.MonkeyPatch) -> set[str]:
    """Return the keys that the backend asks for when it compiles a model."""
    keys: set[str] = set()
    chosen = Choosing.chosen

    def seen(self, regions):
        found = chosen(self, regions)
        keys.update(choice.workload.key for choice in found)
        return found

    monkeypatch.setattr(Choosing, "chosen", seen)
    torch._dynamo.reset()
    fast = torch.compile(model.eval(), backend=backend.tilewright, options={"db": None})
    with config.patch(freezing=frozen), torch.no_grad():
        fast(inputs(model))
    return keys


def keys_of(found: Extraction) -> set[str]:
    return {each.workload.key for each in found.found}


@pytest.mark.parametrize("make", MODELS)
@pytest.mark.parametrize("frozen", [False, True])
def test_keys_are_those_that_the_backend_asks_for(make: Make, frozen: bool, monkeypatch) -> None:
    found = extract(make().eval(), (inputs(make()),), frozen=frozen)
    assert keys_of(found) == asked(make(), frozen, monkeypatch)
    assert any("b=packed" in str(each.workload) for each in found.found) == frozen


@pytest.mark.parametrize("make", MODELS)
def test_ways_that_compete_share_the_weight_of_a_place(make: Make) -> None:
    model = make().eval().to("meta")
    apart, frozen = (extract(model, (inputs(model).to("meta"),), frozen=f) for f in (False, True))
    products = [
        sum(each.weight for each in found.found if "matmul" in str(each.workload))
        for found in (apart, frozen)
    ]
    assert products == [3, 3 / 2 + 1 / 2]
    assert frozen.covered == apart.covered == 1
    flops = [sum(work.flops for work in found.work.values()) for found in (apart, frozen)]
    assert flops[0] == flops[1]


def test_without_products_of_one_factor_nothing_is_halved() -> None:
    found = extract(blocks.Mlp().eval(), (torch.randn(1, 3, 48),), frozen=True)
    assert [(each.weight, sum(each.places.values())) for each in found.found] == [(1, 1), (1, 1)]


def test_what_the_libraries_of_torch_pack_is_left_to_it() -> None:
    model = nn.Sequential(nn.Linear(8, 8), nn.Conv2d(3, 8, 3)).eval()
    found = extract(model, (torch.randn(1, 3, 8, 8),), frozen=True)
    assert len(found.found) == 1 + (not torch.backends.mkldnn.is_available())


def test_the_command_freezes(here, capsys) -> None:
    (here / "model.py").write_text(
        "import torch\n\ndef layer():\n    return torch.nn.Linear(32, 48), (torch.empty(16, 32),)\n"
    )
    for words, layout in (((), "b=col"), (("--frozen",), "b=packed")):
        ask(capsys, "extract", "model.py:layer", "--out", "suite.toml", *words)
        assert layout in (here / "suite.toml").read_text()


def test_weights_are_frozen_for_inference_on_a_device_that_is_here() -> None:
    given = (blocks.Mlp(), (torch.randn(1, 3, 48),))
    with pytest.raises(InputError, match="weights change in training"):
        extract(*given, training=True, frozen=True)
    if not torch.cuda.is_available():
        with pytest.raises(InputError, match="frozen weights are for devices that are here; cuda"):
            extract(*given, target="cuda:sm_90a", frozen=True)
