"""Graphs of dynamic sizes call kernels of tables, whatever size a call has."""

from __future__ import annotations

import shutil
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

import pytest

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.filterwarnings("ignore::DeprecationWarning")  # of torch's own modules

from torch import nn  # noqa: E402
from torch._inductor.compile_fx import compile_fx  # noqa: E402

from tests.scheduler.dispatch.records import put  # noqa: E402
from tilewright import Database, detect_target, explain  # noqa: E402
from tilewright.scheduler.dispatch.keeping import keep  # noqa: E402
from tilewright.scheduler.dispatch.making import dispatch_table  # noqa: E402
from tilewright.scheduler.torch import backend  # noqa: E402
from tilewright.scheduler.torch.backend import choosing, judging, whole  # noqa: E402
from tilewright.scheduler.torch.backend.by_size import BySize, by_halves  # noqa: E402
from tilewright.scheduler.torch.kernels.building import wait_for_builds  # noqa: E402
from tilewright.scheduler.torch.kernels.functions import functions  # noqa: E402
from tilewright.scheduler.torch.kernels.open_keys import LINE  # noqa: E402
from tilewright.scheduler.torch.regions.partition import partition  # noqa: E402
from tilewright.scheduler.torch.regions.sizes import admits, hints_of, within  # noqa: E402

TARGET = detect_target("cpu", 1)
TIMES = {1: 1e-6, 8: 4e-6, 32: 1e-5}
PRODUCT = "matmul n=40 k=24"


@pytest.fixture(autouse=True)
def _alone() -> Iterator[None]:
    """One thread, and nothing that other tests compiled."""
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    torch._dynamo.reset()
    yield
    torch.set_num_threads(before)


@pytest.fixture
def known(tmp_path: Path) -> Path:
    """A database with kernels of three sizes of a product."""
    path = tmp_path / "known.db"
    with Database(path) as database:
        put(database, TIMES, TARGET, PRODUCT)
    return path


def compiled(model: Callable[..., Any], database: Path | None, **options: Any) -> Any:
    given = {"db": database, **options}
    return torch.compile(model, backend=backend.tilewright, options=given)


def rows_of(*shape: int) -> torch.Tensor:
    """Random rows, of which there may be any number."""
    made = torch.randn(*shape)
    for dimension in range(len(shape) - 1):
        torch._dynamo.mark_dynamic(made, dimension)
    return made


def called(monkeypatch: pytest.MonkeyPatch, fast: Any) -> list[tuple[int, int]]:
    """Note the rows of each kernel that a compiled model calls, with those of the call."""
    region, *_ = explain(fast).graphs[0].regions
    function = functions.known(region.program, "cpu", 1)
    found: list[tuple[int, int]] = []
    for size, kernel in dict(function._functions).items():

        def noted(*arrays: Any, size: int = size, kernel: Any = kernel, **named: Any) -> Any:
            found.append((size, arrays[0].shape[0]))
            return kernel(*arrays, **named)

        monkeypatch.setitem(function._functions, size, noted)
    return found


def test_one_set_of_kernels_serves_all_sizes(known, monkeypatch) -> None:
    torch.manual_seed(0)
    weight = torch.randn(24, 40)
    fast = compiled(lambda x: x @ weight, known, judge="always")
    with torch.no_grad():
        fast(rows_of(7, 24))
        (region,) = explain(fast).graphs[0].regions
        assert (region.by, region.why) == ("tilewright", "asked for")
        assert region.program.startswith("axes a0=*, ")
        assert region.table == "a0=1 to 32 by kernels of 1, 8, 32"
        seen = called(monkeypatch, fast)
        for rows in (2, 8, 13, 32, 100):
            x = rows_of(rows, 24)
            torch.testing.assert_close(fast(x), x @ weight, rtol=1e-4, atol=1e-5)
    assert {size for size, _ in seen} == {1, 8, 32}
    assert all(rows <= 32 for _, rows in seen)  # beyond the table it is torch's
    assert len(explain(fast).graphs) == 1


def test_a_table_that_was_kept_is_taken_before_all_records(known) -> None:
    with Database(known) as database:
        keep(dispatch_table(PRODUCT, "1-16:1", database, 1, target=TARGET), database)
    weight = torch.randn(24, 40)
    fast = compiled(lambda x: x @ weight, known, judge="always")
    with torch.no_grad():
        fast(rows_of(7, 24))
    (region,) = explain(fast).graphs[0].regions
    assert region.table.startswith("a0=1 to 16 by kernels of ")
    assert f"table: {region.table}" in str(explain(fast))


def test_what_has_no_table_is_torchs(tmp_path) -> None:
    weight = torch.randn(24, 40)
    for database, why in (
        (None, "a dynamic size, and there is no database of tables"),
        (tmp_path / "new.db", "a dynamic size of which nothing is on record"),
    ):
        torch._dynamo.reset()
        fast = compiled(lambda x: x @ weight, database)
        with torch.no_grad():
            fast(rows_of(7, 24))
        assert [r.why for r in explain(fast).graphs[-1].regions] == [why]


def test_beyond_a_table_the_graph_without_kernels_is_called(known, monkeypatch) -> None:
    """So torch computes such sizes as it would without us, not one operator after the other."""
    monkeypatch.setattr(judging, "in_turns", lambda *_: judging.Times(1.0, 2.0))
    graphs: list[BySize] = []
    made = BySize.__init__
    monkeypatch.setattr(
        BySize, "__init__", lambda self, *given: (graphs.append(self), made(self, *given))[1]
    )
    weight = torch.randn(24, 40)
    fast = compiled(lambda x: x @ weight, known)
    with torch.no_grad():
        for rows in (7, 32, 33):
            x = rows_of(rows, 24)
            torch.testing.assert_close(fast(x), x @ weight, rtol=1e-4, atol=1e-5)
    (graph,) = graphs
    assert sorted(graph._sizes._known.items()) == [((7,), True), ((32,), True), ((33,), False)]


class Two(nn.Module):
    """Two layers over tokens of several texts, of which there may be any number."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second = nn.Linear(24, 40), nn.Linear(40, 24)
        self.norm = nn.LayerNorm(24)

    def forward(self, x: torch.Tensor) -> torch.Tensor:
        return self.norm(x + self.second(torch.nn.functional.gelu(self.first(x))))


def test_tokens_of_all_texts_are_one_axis(tmp_path) -> None:
    """Batches of texts and their lengths may both vary. One table serves their product."""
    path, model, x = tmp_path / "known.db", Two(), rows_of(3, 5, 24)
    with torch.no_grad(), Database(path) as database:
        for region in partition(captured(model, x), TARGET).regions:
            text = region.key.replace("a0=*, ", "").replace(LINE, "\n")
            put(database, {6: 1e-6, 24: 1e-6}, TARGET, text, "a0")
        fast = compiled(model, path, judge="always")
        for shape in ((3, 5, 24), (2, 3, 24), (7, 9, 24)):
            x = rows_of(*shape)
            torch.testing.assert_close(fast(x), model(x), rtol=1e-4, atol=1e-5)
    (graph,) = explain(fast).graphs
    assert [region.by for region in graph.regions] == ["tilewright"] * 3
    assert {region.table for region in graph.regions} == {"a0=1 to 24 by kernels of 6, 24"}
    assert graph.left == {}


def captured(model: nn.Module, *args: torch.Tensor) -> torch.fx.Graph:
    """The graph of a model of dynamic sizes, as Inductor has it."""
    graphs: list[torch.fx.Graph] = []

    def keep(module: torch.fx.GraphModule, inputs: Any, **_: Any) -> Any:
        graphs.append(module.graph)
        return module.forward

    def only_kept(module: torch.fx.GraphModule, inputs: Any) -> Any:
        compile_fx(module, inputs, inner_compile=keep)
        return module.forward

    torch.compile(model, backend=only_kept)(*args)
    torch._dynamo.reset()
    (graph,) = graphs
    return graph


def test_sizes_at_which_kernels_are_slower_are_torchs(known, monkeypatch) -> None:
    """Each span of sizes that a table serves alike is judged by itself, by the times of the whole
    graph. A size of which there is a kernel is a span of its own."""
    rows: list[int] = []

    def in_turns(ours: Any, rival: Any, inputs: Any) -> judging.Times:
        size = next(each.shape[0] for each in inputs[0] if getattr(each, "shape", ())[1:] == (24,))
        rows.append(size)
        return judging.Times(1.0, 2.0 if size in (7, 8, 32) else 0.5)

    weight = torch.randn(24, 40)
    fast = compiled(lambda x: x @ weight, known)
    with torch.no_grad():
        monkeypatch.setattr(judging, "in_turns", in_turns)
        fast(rows_of(7, 24))
        (graph,) = explain(fast).graphs
        assert graph.gain == 2.0
        assert graph.sizes == "8, 32"
        assert "with kernels at the sizes 8, 32" in str(explain(fast))
        taken = [(span.first, span.last) for span in graph.spans if span.taken]
        assert taken == [(8, 8), (32, 32)]
        assert "size 8: with kernels, 2.00 x torch at 8" in str(explain(fast))
        assert "sizes 25-31: torch alone, 0.50 x torch at 28" in str(explain(fast))
        with Database(known) as database:
            spans = [run.configuration.get("spans") for run in database.runs()]
        assert [asdict(span) for span in graph.spans] in spans
        seen = called(monkeypatch, fast)
        for size in range(1, 40):
            x = rows_of(size, 24)
            torch.testing.assert_close(fast(x), x @ weight, rtol=1e-4, atol=1e-5)
            assert bool(seen) == (size in (8, 32)), size
            seen.clear()
    assert {1, 8, 32} < set(rows)


def test_sizes_are_judged_when_kernels_were_built_meanwhile(known, monkeypatch) -> None:
    """The kernels of a table are there, and one of plain sizes is built meanwhile."""
    monkeypatch.setattr(choosing, "are_built", lambda *_: True)

    def in_turns(ours: Any, rival: Any, inputs: Any) -> judging.Times:
        sizes = {each.shape[0] for each in inputs[0] if getattr(each, "shape", ())[1:] == (24,)}
        return judging.Times(1.0, 2.0 if sizes & {7, 8} else 0.5)

    monkeypatch.setattr(judging, "in_turns", in_turns)
    weight, plain = torch.randn(24, 40), torch.randn(6, 18)

    def model(x: torch.Tensor, other: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return x @ weight, torch.relu(other @ plain)

    fast, other = compiled(model, known, build="background"), torch.randn(5, 6)
    with torch.no_grad():
        fast(rows_of(7, 24), other)
        wait_for_builds()
        (graph,) = explain(fast).graphs
        assert [region.why for region in graph.regions] == ["faster", "built meanwhile"]
        assert (graph.by, graph.sizes, graph.gain) == ("tilewright", "8", 2.0)
        seen = called(monkeypatch, fast)
        for size in (5, 8, 20, 32, 33):
            x = rows_of(size, 24)
            for made, right in zip(fast(x, other), model(x, other), strict=True):
                torch.testing.assert_close(made, right, rtol=1e-4, atol=1e-5)
            assert bool(seen) == (size == 8), size
            seen.clear()
    with Database(known) as database:
        spans = [run.configuration.get("spans") for run in database.runs()]
    assert [asdict(span) for span in graph.spans] in spans


def test_sizes_are_timed_from_the_middle_as_long_as_there_is_time(known, monkeypatch) -> None:
    assert list(by_halves(7)) == [3, 1, 5, 0, 2, 4, 6]
    assert list(by_halves(0)) == []
    counts = []
    for seconds in (-1.0, 100.0):
        torch._dynamo.reset()
        calls: list[Any] = []
        monkeypatch.setattr(whole, "SPAN_SECONDS", seconds)
        monkeypatch.setattr(
            judging, "in_turns", lambda *_, calls=calls: calls.append(1) or judging.Times(1.0, 2.0)
        )
        weight = torch.randn(24, 40)
        own = shutil.copy(known, known.with_name(f"own{seconds}.db"))
        fast = compiled(lambda x, weight=weight: x @ weight, Path(own))
        with torch.no_grad():
            fast(rows_of(7, 24))
        counts.append(len(calls))
        assert explain(fast).graphs[-1].sizes == "2-32"
    region, captured_size, middle = 1, 1, 1
    assert counts[0] == region + captured_size + middle < counts[1]


def test_a_graph_that_is_slower_at_every_size_is_torchs(known, monkeypatch) -> None:
    weight = torch.randn(24, 40)
    fast = compiled(lambda x: x @ weight, known)
    times = iter([judging.Times(1.0, 2.0)])  # the region's own
    monkeypatch.setattr(judging, "in_turns", lambda *_: next(times, judging.Times(1.0, 0.5)))
    with torch.no_grad():
        x = rows_of(7, 24)
        torch.testing.assert_close(fast(x), x @ weight, rtol=1e-4, atol=1e-5)
    (graph,) = explain(fast).graphs
    assert (graph.by, graph.why) == ("torch", "the whole graph is slower with kernels")
    assert not graph.sizes


def test_a_graph_is_not_timed_at_sizes_that_it_is_never_called_with(known, monkeypatch) -> None:
    """Its cache has 20 rows: compiled code that is given more reads beyond them."""
    weight, cache = torch.randn(24, 40), torch.randn(20, 24)
    rows: list[int] = []

    def in_turns(ours: Any, rival: Any, inputs: Any) -> judging.Times:
        rows.extend(each.shape[0] for each in inputs[0] if getattr(each, "shape", ())[1:] == (24,))
        return judging.Times(1.0, 2.0)

    monkeypatch.setattr(judging, "in_turns", in_turns)
    fast = compiled(lambda x: (cache[: x.shape[0]] * x) @ weight, known)
    with torch.no_grad():
        for size in (7, 20, 3):
            x = rows_of(size, 24) if size == 7 else torch.randn(size, 24)
            torch.testing.assert_close(fast(x), (cache[:size] * x) @ weight, rtol=1e-4, atol=1e-5)
    (graph,) = explain(fast).graphs
    assert graph.sizes == "2-20"
    assert 2 < max(rows) <= 20


@pytest.mark.parametrize("is_faster", [True, False])
def test_a_graph_is_timed_at_the_multiples_that_it_is_called_with(
    known, monkeypatch, is_faster: bool
) -> None:
    """No span is left out because its middle and its ends are no multiples of 8."""

    def in_turns(ours: Any, rival: Any, inputs: Any) -> judging.Times:
        slow = {16, 24} & {each for each in inputs[0] if isinstance(each, int)}  # whole graphs
        return judging.Times(1.0, 2.0 if is_faster or not slow else 0.5)

    def model(x: torch.Tensor) -> torch.Tensor:
        return x @ weight if x.shape[0] % 8 == 0 else x

    weight = torch.randn(24, 40)
    monkeypatch.setattr(judging, "in_turns", in_turns)
    fast = compiled(model, known)
    with torch.no_grad():
        fast(rows_of(16, 24))
        seen = called(monkeypatch, fast)
        for size in (8, 16, 24, 32):
            torch.testing.assert_close(fast(x := torch.randn(size, 24)), model(x))
            (graph,) = explain(fast).graphs
            assert bool(seen) == _has(graph.sizes, size), (graph.sizes, size)
            seen.clear()
        assert _has(graph.sizes, 24) == is_faster


def _has(sizes: str, size: int) -> bool:
    """Tell whether ranges such as ``2-8, 12`` have a size."""
    ends = (each.split("-") for each in sizes.split(", "))
    return any(int(each[0]) <= size <= int(each[-1]) for each in ends)


def test_what_a_graph_was_captured_under_is_known(known) -> None:
    def model(x: torch.Tensor) -> torch.Tensor:
        return x * 2 if x.shape[0] < 30 and x.shape[0] % 3 == 1 else x

    graph = captured(model, rows_of(7, 24))  # type: ignore[arg-type]
    (symbol,) = hints_of(graph)
    assert within(graph, symbol, range(1, 100)) == range(2, 30)
    assert [size for size in range(2, 12) if admits(graph, {symbol: size})] == [4, 7, 10]


def test_a_graph_of_many_sizes_has_regions() -> None:
    """A copy of the graph has another number for each size: all are small enough for arrays."""
    given = [torch.randn(3 + 2 * place, 4 + 2 * place) for place in range(9)]
    fast = torch.compile(
        lambda *each: [torch.softmax(x, -1) for x in each],
        backend=backend.tilewright,
        options={"db": None},
        dynamic=True,
    )
    with torch.no_grad():
        for made, x in zip(fast(*given), given, strict=True):
            torch.testing.assert_close(made, torch.softmax(x, -1))
    (graph,) = explain(fast).graphs
    assert graph.why == "it has no region"
    reasons = {why for _, why in graph.left}
    assert any(why.startswith("2 axes of its program have a dynamic size") for why in reasons)


@pytest.mark.parametrize("keys_are_outermost", [True, False])
@pytest.mark.parametrize("grown", [True, False])
def test_keys_and_values_are_as_many_whatever_their_symbols(keys_are_outermost, grown) -> None:
    """Each of the two caches has a symbol of its own, whose values are equal."""

    def attention(query: Any, key: Any, value: Any, more: Any) -> Any:
        if grown:
            key, value = (torch.cat((each, more), -3) for each in (key, value))
        key, value = (each.transpose(1, 2) for each in (key, value))
        return torch.nn.functional.scaled_dot_product_attention(query, key, value)

    caches = [torch.randn(1, 37, 2, 16) for _ in range(2)]
    if not keys_are_outermost:
        caches = [each.transpose(1, 2).contiguous().transpose(1, 2) for each in caches]
    for cache in caches:
        torch._dynamo.mark_dynamic(cache, 1)
    given = (torch.randn(1, 2, 1, 16), *caches, torch.randn(1, 1, 2, 16))
    fast = compiled(attention, None)
    with torch.no_grad():
        torch.testing.assert_close(fast(*given), attention(*given))
    (graph,) = explain(fast).graphs
    if keys_are_outermost or grown:  # what is put together is
        (region,) = graph.regions
        assert "=*" in region.program
    else:
        (why,) = [why for name, why in graph.left if "attention" in name]
        assert "is not the outermost axis of x1 in memory" in why
