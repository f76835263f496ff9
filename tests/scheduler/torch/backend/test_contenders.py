"""Regions compete with what torch runs in the model: libraries with packed weights, if it is
frozen."""

from __future__ import annotations

from functools import partial

import pytest
import torch
from torch import fx, nn
from torch._inductor.compile_fx import compile_fx, compile_fx_inner

from tests.scheduler.torch import blocks
from tilewright.scheduler.torch import backend
from tilewright.scheduler.torch.backend import compiler, judging
from tilewright.scheduler.torch.backend.contenders import Contender, compete
from tilewright.scheduler.torch.backend.libraries import PLAINLY
from tilewright.scheduler.torch.backend.replacing import copied
from tilewright.scheduler.torch.translation.nodes import name_of

pytestmark = [
    pytest.mark.skipif(not torch.backends.mkldnn.is_available(), reason="torch has no oneDNN"),
    pytest.mark.usefixtures("frozen"),
]


def compiled_pieces(
    model: nn.Module, x: torch.Tensor, monkeypatch: pytest.MonkeyPatch
) -> list[tuple[set[str], int]]:
    """Return the operators of each graph that competes while a model is compiled, and the number of
    its outputs."""
    found: list[tuple[set[str], int]] = []
    inner = compiler.compiled_aside

    def seen(module, inputs):
        names = {name_of(node) for node in module.graph.nodes}
        found.append((names, len(module.graph.output_node().args[0])))
        return inner(module, inputs)

    monkeypatch.setattr(compiler, "compiled_aside", seen)
    fast = torch.compile(model.eval(), backend=backend.tilewright, options={"db": None})
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x), rtol=1.6e-2, atol=1e-2)
    return found


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize(
    ("model", "shape"),
    [
        (blocks.Mlp(), (1, 5, 48)),
        (nn.Sequential(nn.Conv2d(4, 8, 3, padding=1), nn.ReLU()), (1, 4, 7, 7)),
    ],
)
def test_regions_compete_with_libraries_that_torch_packed_weights_for(
    model: nn.Module, shape: tuple[int, ...], dtype: torch.dtype, monkeypatch
) -> None:
    given = torch.randn(shape, dtype=dtype)
    found = compiled_pieces(model.to(dtype), given, monkeypatch)
    rivals = [names for names, _ in found if not any("run" in name for name in names)]
    assert rivals
    assert all(names & PLAINLY.keys() for names in rivals)


def test_joined_products_compete_with_libraries_as_well(monkeypatch) -> None:
    model = blocks.Gated(24, 40)
    monkeypatch.setattr(judging.Times, "wins", False)  # no kernel takes the place of a library
    found = compiled_pieces(model, torch.randn(2, 5, 24), monkeypatch)
    apart = [names for names, outputs in found if outputs > 1 and names & PLAINLY.keys()]
    assert apart


def compiled(model: nn.Module, x: torch.Tensor) -> Contender:
    """Return the graph that Inductor compiles of a frozen model."""
    found: list[Contender] = []

    def kept(module, inputs, **settings):
        found.append(Contender(copied(module), compiler.compiled_aside))
        return compile_fx_inner(module, inputs, **settings)

    fast = torch.compile(model.eval(), backend=partial(compile_fx, inner_compile=kept))
    with torch.no_grad():
        fast(x)
    return found[0]


@pytest.mark.parametrize("dtype", [torch.float32, torch.bfloat16])
@pytest.mark.parametrize("rows", [5, 130])
def test_each_call_reads_the_constants_that_it_is_given(rows: int, dtype: torch.dtype) -> None:
    """MKL's packed weights depend on where they lie in memory, so copies are packed anew."""
    model = nn.Linear(64, 48).to(dtype)
    x = torch.randn(rows, 64, dtype=dtype)
    contenders = [compiled(made, x) for made in (model, nn.Linear(64, 48).to(dtype))]
    one, other = contenders
    with judging.running():
        before = [contender([x])[0].clone() for contender in contenders]
        assert not judging.close(*before)
        for _ in range(20):
            one.read(one.copies())
            assert judging.close(one([x])[0], before[0])
        one.read(other.copies())
        assert judging.close(one([x])[0], before[1])
    torch.testing.assert_close(model(x), before[0], rtol=1.6e-2, atol=1e-2)


def test_constants_of_modules_within_a_module_are_exchanged_too() -> None:
    """Graphs of exported models name them so."""
    graph, x = fx.Graph(), torch.randn(3, 8)
    given = graph.placeholder("x")
    given.meta["val"] = x
    graph.output((graph.call_function(torch.matmul, (given, graph.get_attr("0.weight"))),))
    model = nn.Sequential(nn.Module())
    model[0].register_parameter("weight", nn.Parameter(torch.randn(8, 4)))
    one = Contender(fx.GraphModule(model, graph), lambda module, _: lambda inputs: module(*inputs))
    weight = torch.randn(8, 4)
    with torch.no_grad():
        torch.testing.assert_close(one([x])[0], x @ model[0].weight)
        one.read([weight])
        torch.testing.assert_close(one([x])[0], x @ weight)


def test_contenders_of_other_results_have_no_times() -> None:
    x = torch.randn(7, 20)
    one, other = (compiled(nn.Linear(20, 12), x) for _ in range(2))
    assert compete(one, other, 1000, {}) is None
    assert compete(one, one, 1000, {}) is not None
