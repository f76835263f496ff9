"""A frozen model is extracted as the backend computes it: weights packed, products joined."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import pytest

torch = pytest.importorskip("torch")

from torch import nn  # noqa: E402
from torch._inductor import config  # noqa: E402
from torch._inductor.compile_fx import compile_fx, compile_fx_inner  # noqa: E402

from tests.scheduler.cli.command import ask  # noqa: E402
from tests.scheduler.torch import blocks  # noqa: E402
from tilewright import InputError, extract  # noqa: E402
from tilewright.scheduler.torch import backend  # noqa: E402
from tilewright.scheduler.torch.backend.choosing import Choosing  # noqa: E402
from tilewright.scheduler.torch.backend.libraries import (  # noqa: E402
    PLAINLY,
    read_packed,
    read_plain,
)
from tilewright.scheduler.torch.backend.replacing import copied  # noqa: E402
from tilewright.scheduler.torch.extraction.extraction import Extraction  # noqa: E402
from tilewright.scheduler.torch.translation.nodes import name_of  # noqa: E402

Make = Callable[[], nn.Module]
MODELS = [lambda: blocks.Separate(32, (True, False, True)), lambda: blocks.Gated(24, 40)]


def inputs(model: nn.Module) -> torch.Tensor:
    return torch.randn(2, 5, next(model.parameters()).shape[1])


def asked(
    model: nn.Module,
    frozen: bool,
    monkeypatch: pytest.MonkeyPatch,
    given: torch.Tensor | None = None,
) -> set[str]:
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
        fast(inputs(model) if given is None else given)
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


class Convolutions(nn.Module):
    """Convolutions of all kinds, whose weights oneDNN packs."""

    def __init__(self) -> None:
        super().__init__()
        self.first = nn.Conv2d(4, 8, 3, padding=1)
        self.wider = nn.ConvTranspose2d(8, 12, 3, stride=2, padding=1, groups=2, bias=False)
        self.apart = nn.Conv2d(12, 12, 3, groups=12)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        made: torch.Tensor = self.apart(self.wider(torch.relu(self.first(x))))
        return made


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("make", "shape", "count"),
    [(Convolutions, (2, 4, 7, 7), 3), (lambda: blocks.Gated(24, 40), (2, 5, 24), 4)],
)
def test_what_torch_packs_for_its_libraries_is_extracted(
    make: Make, shape: tuple[int, ...], count: int, dtype: torch.dtype, monkeypatch
) -> None:
    model = make().to(dtype).eval()
    found = extract(model, (torch.randn(shape, dtype=dtype),), frozen=True)
    assert keys_of(found) == asked(model, True, monkeypatch, torch.randn(shape, dtype=dtype))
    assert found.covered == 1
    assert len(found.found) == count


@pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch has no oneDNN")
@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("make", [Convolutions, blocks.Mlp])
@pytest.mark.parametrize("dynamic", [None, True])
def test_what_no_kernel_computes_calls_its_library_again(
    make: Make, dtype: torch.dtype, dynamic: bool | None
) -> None:
    model = make().to(dtype).eval()
    x = torch.randn((2, 4, 7, 7) if make is Convolutions else (2, 5, 48), dtype=dtype)
    called: list[set[str]] = []

    def kept(module, given, **settings):
        called.append({name_of(node) for node in module.graph.nodes})
        read_plain(module)
        called.append({name_of(node) for node in module.graph.nodes})
        made = copied(module)
        read_packed(made)
        called.append({name_of(node) for node in made.graph.nodes})
        return compile_fx_inner(made, given, **settings)

    torch._dynamo.reset()
    own = partial(compile_fx, inner_compile=kept)
    fast = torch.compile(model, backend=own, dynamic=dynamic)
    with config.patch(freezing=True), torch.no_grad():
        torch.testing.assert_close(fast(x), model(x), rtol=1.6e-2, atol=1e-2)
    before, plainly, after = called
    assert before & PLAINLY.keys()
    assert not plainly & PLAINLY.keys()
    assert before & PLAINLY.keys() == after & PLAINLY.keys()


def test_a_model_without_kernels_says_what_has_some() -> None:
    with pytest.raises(InputError, match=r"no kernel computes.*; allowed: models with a product"):
        extract(nn.ReLU(), (torch.randn(4),), frozen=True)


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
