"""Compiled models give what they give without this backend."""

from __future__ import annotations

import logging
import os
import subprocess
import sys
import tomllib
import warnings
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest
import torch
from torch import fx, nn
from torch._inductor.compile_fx import compile_fx

from tests.scheduler.torch.models import Attention, Convolutions, Mlp
from tilewright import (
    Explanation,
    InputError,
    Workload,
    best,
    detect_target,
    explain,
    tune,
    workload,
)
from tilewright.measure.database import Database
from tilewright.scheduler.dispatch.costs import comparisons
from tilewright.scheduler.report.graphs import graphs_of
from tilewright.scheduler.report.material import read_materials
from tilewright.scheduler.torch import backend
from tilewright.scheduler.torch.backend import choosing, judging, whole
from tilewright.scheduler.torch.extraction.capture import captured
from tilewright.scheduler.torch.kernels import building
from tilewright.scheduler.torch.kernels.building import wait_for_builds
from tilewright.scheduler.torch.operator import definition as operator
from tilewright.scheduler.torch.regions.partition import partition
from tilewright.scheduler.tuning.runs.sessions import sessions

ROOT = Path(__file__).parents[4]
ALWAYS = {"judge": "always", "db": None}


@pytest.fixture(scope="module", autouse=True)
def _quiet() -> Iterator[None]:
    """One thread, and Inductor's files where the tests' are."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch._dynamo.reset()  # sizes that other tests had make no size of these ones dynamic
    yield
    torch.set_num_threads(before)


def compiled(model: Callable[..., Any], options: dict[str, Any] = ALWAYS, **named: Any) -> Any:
    return torch.compile(model, backend=backend.tilewright, options=options, **named)


def by_kernels(found: Explanation) -> list[int]:
    """How many regions kernels compute, graph by graph."""
    return [sum(r.places for r in graph.regions if r.by == "tilewright") for graph in found.graphs]


@pytest.fixture(scope="module")
def mlp() -> tuple[nn.Module, Any]:
    torch.manual_seed(0)
    model = Mlp()
    return model, compiled(model)


def test_an_mlp_is_three_kernels(mlp) -> None:
    model, fast = mlp
    x = torch.randn(5, 32)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-5)
    (graph,) = explain(fast).graphs
    assert (graph.kind, graph.by) == ("inference", "tilewright")
    assert by_kernels(explain(fast)) == [3]
    assert graph.left == {}


def test_training_gives_the_gradients_of_torch() -> None:
    torch.manual_seed(0)
    model = nn.Sequential(nn.Linear(24, 16), nn.ReLU())
    fast = compiled(model)
    found = []
    for run in (fast, model):
        x = torch.linspace(-1, 1, 5 * 24).view(5, 24).requires_grad_()
        model.zero_grad()
        run(x).square().sum().backward()
        found.append([x.grad, *(parameter.grad.clone() for parameter in model.parameters())])
    torch.testing.assert_close(*found, rtol=1e-4, atol=1e-5)
    assert [graph.kind for graph in explain(fast).graphs] == ["forward", "backward"]
    assert by_kernels(explain(fast))[0] == 1
    assert by_kernels(explain(fast))[1] >= 2


def test_attention_leaves_only_its_rotation_to_torch() -> None:
    torch.manual_seed(0)
    model = Attention().eval()
    fast, x = compiled(model), torch.randn(2, 6, 32)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-5)
    (graph,) = explain(fast).graphs
    assert by_kernels(explain(fast)) == [3]
    heavy = {"mm", "addmm", "bmm", "_scaled_dot_product_flash_attention_for_cpu"}
    assert not heavy & {name for name, _ in graph.left}


def test_convolutions_are_kernels_in_any_layout() -> None:
    torch.manual_seed(0)
    model = Convolutions().eval()
    x = torch.randn(1, 8, 6, 6)
    for given in (x, x.contiguous(memory_format=torch.channels_last)):
        torch._dynamo.reset()
        fast = compiled(model)
        with torch.no_grad():
            found, wanted = fast(given), model(given)
        torch.testing.assert_close(found, wanted, rtol=1e-5, atol=1e-5)
        assert found.stride() == wanted.stride()
        assert by_kernels(explain(fast))[-1] == 2


@pytest.mark.parametrize(
    ("model", "size"), [(Mlp(), (5, 32)), (Attention(), (2, 6, 32)), (Convolutions(), (1, 8, 6, 6))]
)
def test_a_suite_that_is_extracted_has_the_keys_that_a_compilation_asks_for(model, size) -> None:
    """So what was tuned by such a suite is called. Both see the graph that Inductor compiles."""
    target, x = detect_target("cpu"), torch.randn(size)
    (graph,) = captured(model.eval(), (x,), target)
    asked: list[Workload] = []

    def inner(module: fx.GraphModule, *_: Any, **__: Any) -> None:
        asked.extend(region.workload for region in partition(module.graph, target).regions)
        raise StopIteration

    def only_partitioned(module: fx.GraphModule, inputs: list[Any]) -> Any:
        with pytest.raises(StopIteration):
            compile_fx(module, inputs, inner_compile=inner)
        return module.forward

    torch._dynamo.reset()
    with torch.no_grad():
        torch.compile(model, backend=only_partitioned)(x)
    assert asked == [region.workload for region in partition(graph, target).regions] != []


def test_a_region_reads_what_another_kernel_wrote() -> None:
    """If torch computed that once more, the result would be right and only time would show it."""
    torch.manual_seed(0)
    weights = [torch.randn(16, 16) for _ in range(3)]

    def chain(x: torch.Tensor) -> torch.Tensor:
        for weight in weights:
            x = torch.relu(x @ weight) + 1
        return x

    fast, x = compiled(chain), torch.randn(4, 16)
    with torch.no_grad():
        torch.testing.assert_close(fast(x), chain(x), rtol=1e-5, atol=1e-4)
    (graph,) = explain(fast).graphs
    assert by_kernels(explain(fast)) == [3]
    assert graph.left == {}


def test_sizes_may_change_and_rows_be_one_or_none(mlp) -> None:
    model, _ = mlp
    fast = compiled(model, dynamic=True)
    with torch.no_grad():
        for rows in (5, 3, 1, 0):
            x = torch.randn(rows, 32)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-5, atol=1e-5)
    reasons = {region.why for graph in explain(fast).graphs for region in graph.regions}
    assert "a dynamic size, and there is no database of tables" in reasons


def test_a_graph_of_dynamic_sizes_is_compared_as_a_whole(monkeypatch) -> None:
    """With the sizes that it was captured with; it stays dynamic."""
    left, right = torch.randn(24, 40), torch.randn(40, 32)
    asked: list[Any] = []

    def compared(ours: Any, rival: Any, sets: Any) -> judging.Times:
        asked.append(sets[0])
        torch.testing.assert_close(ours(sets[0]), rival(sets[0]))
        return judging.Times(1.0, 2.0) if len(asked) == 1 else judging.Times(2.0, 1.0)

    monkeypatch.setattr(judging, "in_turns", compared)
    fast = compiled(lambda x: x * 2 + torch.relu(left @ right)[0], {"db": None})
    with torch.no_grad():
        for rows in (7, 9, 1):
            x = torch.randn(rows, 32)
            if rows > 1:
                torch._dynamo.mark_dynamic(x, 0)
            torch.testing.assert_close(fast(x), x * 2 + torch.relu(left @ right)[0])
    graph = explain(fast).graphs[0]
    assert (graph.by, graph.gain, graph.why) == (
        "torch",
        0.5,
        "the whole graph is slower with kernels",
    )
    assert 7 in asked[1]
    assert (7, 32) in [each.shape for each in asked[1] if isinstance(each, torch.Tensor)]


def test_the_database_is_asked_again_at_each_compilation(tmp_path: Path) -> None:
    """What it learned in the meantime is used."""
    weight, x = torch.randn(36, 20), torch.randn(6, 36)
    options = {"untuned": "skip", "judge": "always", "db": tmp_path / "known.db"}
    reasons = []
    for _ in range(2):
        torch._dynamo.reset()
        fast = compiled(lambda x: x @ weight, options)
        with torch.no_grad():
            torch.testing.assert_close(fast(x), x @ weight, rtol=1e-4, atol=1e-4)
        (region,) = explain(fast).graphs[-1].regions
        reasons.append((region.why, region.provenance))
        tune(region.program, "cpu:threads=1", options["db"], trials=2)
    assert reasons == [("not tuned", ""), ("asked for", "measured")]


def test_a_workload_may_be_tuned_whose_operands_lie_in_several_ways(tmp_path: Path) -> None:
    options = {"untuned": "tune", "seconds": 1, "judge": "always", "db": tmp_path / "known.db"}
    fast = compiled(lambda x, y: (x.softmax(-1), y.softmax(-1)), options)
    x, y = torch.randn(6, 36), torch.randn(1, 6, 36)
    with torch.no_grad():
        torch.testing.assert_close(fast(x, y), (x.softmax(-1), y.softmax(-1)))
    (graph,) = explain(fast).graphs
    one, other = graph.regions
    assert one.program == other.program


COMPILE = """
import sys, torch
from tilewright import explain
from tilewright.scheduler.torch import backend

torch.manual_seed(0)
torch.set_num_threads(1)
weight, x = torch.randn(28, 20), torch.randn(6, 28)
options = {"judge": "always", "db": "known.db"}
fast = torch.compile(lambda x: torch.relu(x @ weight), backend=backend.tilewright, options=options)
with torch.no_grad():
    torch.testing.assert_close(fast(x), torch.relu(x @ weight), rtol=1e-4, atol=1e-4)
print([region.by for region in explain(fast).graphs[0].regions])
"""


@pytest.mark.slow
def test_two_processes_may_share_a_cache_and_a_database(tmp_path: Path) -> None:
    """Both build the same kernel for the same folder at the same time."""
    path = {"PYTHONPATH": os.pathsep.join(filter(None, sys.path))}
    variables = os.environ | path | {"XDG_CACHE_HOME": str(tmp_path)}
    command = [sys.executable, "-W", "ignore", "-c", COMPILE]
    processes = [
        subprocess.Popen(command, cwd=tmp_path, env=variables, text=True, stdout=subprocess.PIPE)
        for _ in range(2)
    ]
    told = [process.communicate()[0] for process in processes]
    assert told == ["['tilewright']\n"] * 2


def test_inputs_are_changed_in_place_and_outputs_may_be_aliases() -> None:
    weight = torch.randn(8, 8)

    def changing(x: torch.Tensor) -> tuple[torch.Tensor, torch.Tensor, torch.Tensor]:
        y = x @ weight
        x.add_(1)
        return y, y.view(-1), y.t()

    fast = compiled(changing)
    one, other = torch.ones(4, 8), torch.ones(4, 8)
    with torch.no_grad():
        found, wanted = fast(one), changing(other)
    torch.testing.assert_close(found, wanted)
    torch.testing.assert_close(one, other)
    assert found[1].data_ptr() == found[0].data_ptr() == found[2].data_ptr()
    assert by_kernels(explain(fast)) == [1]


def test_what_is_written_into_a_part_of_an_array_is_right() -> None:
    """A kernel writes no gaps: torch copies its result to a column, and to rows that lie apart."""

    def model(x: torch.Tensor, w: torch.Tensor, kept: torch.Tensor) -> torch.Tensor:
        kept[:, 0].copy_(x.sum(1))
        kept[:, 2:18] = torch.relu(x @ w)
        return torch.softmax(kept[:, 2:18], -1)

    torch.manual_seed(0)
    x, w, kept = torch.randn(9, 20), torch.randn(20, 16), torch.randn(9, 20)
    expected = kept.clone()
    fast = compiled(model)
    with torch.no_grad():
        torch.testing.assert_close(fast(x, w, kept), model(x, w, expected), atol=1e-5, rtol=1e-5)
    torch.testing.assert_close(kept, expected, atol=1e-5, rtol=1e-5)
    assert by_kernels(explain(fast)) == [3]


def test_a_database_that_cannot_be_opened_leaves_all_to_inductor(tmp_path: Path) -> None:
    (tmp_path / "no.db").write_text("no database")
    weight, x = torch.randn(12, 12), torch.randn(5, 12)
    fast = compiled(lambda x: x @ weight, {"db": tmp_path / "no.db"})
    with torch.no_grad(), pytest.warns(RuntimeWarning, match="leaves a graph to Inductor") as seen:
        torch.testing.assert_close(fast(x), x @ weight)
    assert len([w for w in seen if "tilewright" in str(w.message)]) == 1
    assert explain(fast).graphs[-1].by == "torch"


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"untunned": "skip"}, "unknown option 'untunned'; did you mean untuned"),
        ({"untuned": "maybe"}, "untuned='maybe'; allowed: predict, skip, tune"),
        ({"seconds": 0}, "seconds=0; allowed: a number above 0"),
        ({"activations": 1.5}, "activations=1.5; allowed: a number from 0 to 1"),
        ({"activations": "half"}, "activations='half'; allowed: a number from 0 to 1"),
        ({"activations": True}, "activations=True; allowed: a number from 0 to 1"),
        ({"judge": 3}, "judge=3; allowed: measure, always"),
        ({"db": 7}, "db=7; allowed: a path"),
    ],
)
def test_a_wrong_option_is_one_line(options: dict[str, Any], words: str) -> None:
    fast = compiled(lambda x: x + 1, options)
    with pytest.raises(InputError) as caught:
        fast(torch.ones(3))
    line = str(caught.value).splitlines()[0]
    assert words in line
    assert len(line) <= 200


def test_inductor_gets_its_own_options() -> None:
    given = {**ALWAYS, "epilogue_fusion": False, "max-autotune": False}
    x = torch.randn(4, 8)
    torch.testing.assert_close(compiled(lambda x: (x * 2).sum(), given)(x), (x * 2).sum())
    with pytest.raises(InputError, match="unknown option 'max_autotune_"):
        compiled(lambda x: x + 1, {"max_autotune_gem": True})(torch.ones(3))


def test_nothing_known_is_left_to_torch_if_that_is_asked_for(caplog) -> None:
    weight, x = torch.randn(12, 12), torch.randn(5, 12)
    fast = compiled(lambda x: x @ weight, {"untuned": "skip", "db": None})
    with torch.no_grad(), caplog.at_level(logging.INFO, "tilewright"):
        torch.testing.assert_close(fast(x), x @ weight)
    (graph,) = explain(fast).graphs
    assert [region.why for region in graph.regions] == ["not tuned"]
    assert graph.why == "not tuned"
    (line,) = [r.getMessage() for r in caplog.records if r.name == "tilewright"]
    assert "kernels compute 0 of 1 regions" in line


def test_torch_serves_until_kernels_are_built() -> None:
    """Then the same compiled model calls them; the next compilation finds them."""
    weight, x = torch.randn(24, 24), torch.randn(3, 24)
    options = {**ALWAYS, "build": "background"}
    fast = compiled(lambda x: torch.relu(x @ weight), options)
    with torch.no_grad():
        for by, why in (("torch", "its kernel is being built"), ("tilewright", "built meanwhile")):
            torch.testing.assert_close(fast(x), torch.relu(x @ weight))
            (region,) = explain(fast).graphs[-1].regions
            if by == "torch" and region.by != by:  # it was built before anybody could look
                continue
            assert (region.by, region.why) == (by, why)
            wait_for_builds()
        torch._dynamo.reset()
        again = compiled(lambda x: torch.relu(x @ weight), options)
        torch.testing.assert_close(again(x), torch.relu(x @ weight))
    assert [region.why for region in explain(again).graphs[-1].regions] == ["asked for"]


def test_what_cannot_be_built_stays_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(building, "COMMAND", (sys.executable, "-c", "pass"))
    weight, x = torch.randn(23, 24), torch.randn(3, 23)
    fast = compiled(lambda x: torch.relu(x @ weight), {**ALWAYS, "build": "background"})
    with torch.no_grad():
        torch.testing.assert_close(fast(x), torch.relu(x @ weight))
        wait_for_builds()
        torch.testing.assert_close(fast(x), torch.relu(x @ weight))
    (region,) = explain(fast).graphs[-1].regions
    assert (region.by, region.why) == ("torch", "some kernel cannot be built")


def test_a_competition_is_remembered(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The second compilation asks the database; it times nothing, whoever won."""
    weight = torch.randn(40, 40)
    x = torch.randn(6, 40)
    options = {"db": tmp_path / "known.db"}
    found = []
    for _ in range(2):
        torch._dynamo.reset()
        fast = compiled(lambda x: torch.relu(x @ weight), options)
        with torch.no_grad(), warnings.catch_warnings():
            warnings.simplefilter("error", RuntimeWarning)
            torch.testing.assert_close(fast(x), torch.relu(x @ weight))
        found += explain(fast).graphs[-1].regions
        monkeypatch.setattr(
            "tilewright.scheduler.torch.backend.choosing.Choosing._times",
            lambda *_: pytest.fail("timed"),
        )
    assert found[0].gain is not None
    assert found[0].gain == found[1].gain
    assert found[0].why in ("faster", "torch is as fast")


def test_the_rival_of_a_kernel_is_torch(monkeypatch: pytest.MonkeyPatch) -> None:
    """A kernel that doubles shows where a kernel is called: of a region, and of the whole graph."""
    put, made = operator.put, []
    doubling = workload("y[i,j] = relu(sum[k](a[i,k] * b[k,j])) * 2", i=9, j=40, k=40)
    monkeypatch.setattr(choosing, "put", lambda *given: (made.append(given), put(*given)))
    ratios = []

    def compared(ours: Any, rival: Any, inputs: Any) -> judging.Times:
        put(*made[-1][:-1], best(doubling, "cpu", None))
        ratios.append((ours(inputs[0])[0] / rival(inputs[0])[0]).nanmedian().item())
        put(*made[-1])
        return judging.Times(1.0, 2.0)

    monkeypatch.setattr(judging, "in_turns", compared)
    weight, x = torch.randn(40, 40), torch.randn(9, 40)
    fast = compiled(lambda x: torch.relu(x @ weight), {"db": None})
    with torch.no_grad():
        torch.testing.assert_close(fast(x), torch.relu(x @ weight))
    assert ratios == pytest.approx([2, 2])
    assert explain(fast).graphs[-1].by == "tilewright"


def test_a_slower_whole_is_torchs(monkeypatch: pytest.MonkeyPatch) -> None:
    turns = iter([judging.Times(1.0, 2.0), judging.Times(2.0, 1.0)])
    monkeypatch.setattr(judging, "in_turns", lambda *_: next(turns))
    weight, x = torch.randn(40, 40), torch.randn(7, 40)
    fast = compiled(lambda x: torch.relu(x @ weight), {"db": None})
    with torch.no_grad():
        torch.testing.assert_close(fast(x), torch.relu(x @ weight))
    (graph,) = explain(fast).graphs
    assert (graph.by, graph.gain) == ("torch", 0.5)
    assert graph.why == "the whole graph is slower with kernels"
    assert "slower with kernels" in str(explain(fast))


def test_the_database_keeps_how_fast_a_whole_graph_is(tmp_path: Path, monkeypatch) -> None:
    turns = iter([judging.Times(1e-3, 2e-3), judging.Times(4e-3, 5e-3)])
    monkeypatch.setattr(judging, "in_turns", lambda *_: next(turns))
    db, weight, x = tmp_path / "known.db", torch.randn(40, 40), torch.randn(7, 40)

    def layer(x: torch.Tensor) -> torch.Tensor:
        return torch.relu(x @ weight)

    fast = compiled(layer, {"db": db})
    with torch.no_grad():
        torch.testing.assert_close(fast(x), layer(x))
    (region,) = explain(fast).graphs[0].regions
    tune(region.program, "cpu:threads=1", db, trials=2)
    with Database(db, create=False) as database:
        (graph,) = graphs_of(read_materials(database))
        (comparison,) = comparisons(detect_target("cpu", 1), database)
        assert len(sessions(database)) == 1  # the run of tune
    assert graph.model.endswith("layer")
    assert (graph.kind, graph.measured, comparison[1]) == ("inference", 1.25, 2.0)
    assert graph.expected == pytest.approx(5 / 4)
    assert [each.computed_by for each in graph.regions] == [("tilewright", "faster")]


def test_a_graph_too_large_for_memory_is_not_compared_as_a_whole(monkeypatch) -> None:
    monkeypatch.setattr(whole, "memory_limit", lambda: 1000)
    monkeypatch.setattr(judging, "in_turns", lambda *_: judging.Times(1.0, 2.0))
    weight, x = torch.randn(40, 40), torch.randn(9, 40)
    fast = compiled(lambda x: torch.relu(x @ weight), {"db": None})
    with torch.no_grad():
        torch.testing.assert_close(fast(x), torch.relu(x @ weight))
    (graph,) = explain(fast).graphs
    assert (graph.by, graph.why) == ("tilewright", "too large to be compared as a whole")


def test_what_is_not_compiled_has_no_explanation() -> None:
    for what in (nn.Linear(3, 3), compiled(nn.Linear(3, 3)), 7):
        with pytest.raises(InputError, match="no graph that this backend compiled"):
            explain(what)


def test_torch_finds_the_backend_by_its_entry_point() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]
    place = project["entry-points"]["torch_dynamo_backends"]["tilewright"]
    module, _, name = place.partition(":")
    assert getattr(import_module(module), name) is backend.tilewright


def test_kernels_compete_with_a_cache_that_is_half_full(monkeypatch: pytest.MonkeyPatch) -> None:
    """An empty one would let attention that reads no key beyond the length win each time."""
    lengths: list[list[int]] = []

    def compared(ours: Any, rival: Any, sets: Any) -> judging.Times:
        numbers = [each for each in sets[0] if not each.dtype.is_floating_point]
        lengths.append([int(each) for each in numbers])
        return judging.Times(1.0, 2.0)

    def cached(q: torch.Tensor, k: torch.Tensor, length: torch.Tensor) -> torch.Tensor:
        mask = torch.arange(k.shape[2])[None] <= length
        return nn.functional.scaled_dot_product_attention(q, k, k, attn_mask=mask)

    monkeypatch.setattr(judging, "in_turns", compared)
    fast = compiled(cached, {"db": None})
    given = (torch.randn(1, 2, 1, 16), torch.randn(1, 2, 40, 16), torch.tensor(7))
    with torch.no_grad():
        torch.testing.assert_close(fast(*given), cached(*given), rtol=1e-4, atol=1e-5)
    assert by_kernels(explain(fast)) == [1]
    assert lengths == [[20], [20]]
