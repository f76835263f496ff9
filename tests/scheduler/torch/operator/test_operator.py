"""The operators by which compiled graphs call kernels."""

from __future__ import annotations

import shutil
import warnings
from collections.abc import Iterator

import pytest
import torch
from functorch.compile import aot_function
from torch._subclasses.fake_tensor import FakeTensorMode
from torch.fx.experimental.symbolic_shapes import ShapeEnv

from tilewright import best, workload
from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.scheduler.torch.kernels.building import wait_for_builds
from tilewright.scheduler.torch.kernels.functions import Functions, functions, key_of, workload_of
from tilewright.scheduler.torch.operator import definition as operator
from tilewright.scheduler.torch.operator import native

PRODUCT = workload("y[i,j] = sum[k](a[i,k] * b[k,j])", i=8, j=6, k=16)
TWO = workload("m[r] = max[c](x[r,c])\ns[r] = sum[c](x[r,c])\n-> m, s", r=4, c=32)
PERMUTED = workload("y[j,i] = x[i,j] + 1\ny: float32[j,i](order=(1, 0))", i=4, j=6)

run = torch.ops.tilewright.run
several = torch.ops.tilewright.run_several


@pytest.fixture(scope="module", autouse=True)
def _no_database() -> Iterator[None]:
    before, functions.database = functions.database, None
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        yield
    functions.database = before


@pytest.fixture
def matrices() -> list[torch.Tensor]:
    torch.manual_seed(0)
    return [torch.randn(8, 16), torch.randn(16, 6)]


def test_it_gives_the_product(matrices: list[torch.Tensor]) -> None:
    with torch.no_grad():
        found = run(matrices, key_of(PRODUCT))
        out = torch.empty(8, 6)
        again = run.out(matrices, key_of(PRODUCT), out=out)
    torch.testing.assert_close(found, matrices[0] @ matrices[1])
    assert again.data_ptr() == out.data_ptr()
    assert torch.equal(out, found)


@pytest.mark.skipif(not shutil.which("g++"), reason="needs a compiler of C++")
def test_the_operator_of_the_cpu_is_built_where_a_compiler_is() -> None:
    assert operator.IN_CPP


def test_python_computes_the_same(matrices: list[torch.Tensor]) -> None:
    out = torch.empty(8, 6)
    operator._run_out(matrices, key_of(PRODUCT), out=out)
    with torch.no_grad():
        assert torch.equal(out, operator._run(matrices, key_of(PRODUCT)))
        assert torch.equal(out, run(matrices, key_of(PRODUCT)))


def test_a_call_without_an_overload_writes_no_tensor_as_a_text(matrices, monkeypatch) -> None:
    """Torch does that to refuse a tensor, in half a millisecond for each overload that is tried in
    vain."""
    written: list[torch.Tensor] = []
    known = torch.Tensor.__repr__
    monkeypatch.setattr(
        torch.Tensor, "__repr__", lambda x, **k: (written.append(x), known(x, **k))[1]
    )
    key, out = key_of(PRODUCT), torch.empty(8, 6)
    for made in (run(*matrices, key), run(*matrices, key, out=out), run(matrices, key)):
        assert torch.equal(made, run.of2(*matrices, key))
    assert written == []


def test_several_outputs_are_a_list() -> None:
    x = torch.randn(4, 32)
    with torch.no_grad():
        most, total = several([x], key_of(TWO))
    torch.testing.assert_close(most, x.amax(1))
    torch.testing.assert_close(total, x.sum(1))
    with torch.no_grad(), pytest.raises(RuntimeError, match="several outputs"):
        run([x], key_of(TWO))


@pytest.mark.parametrize("name", [operator.BY_TORCH, operator.IN_PYTHON])
def test_several_outputs_come_from_elsewhere_too(name: str) -> None:
    """C++ calls these where it has no kernel of a key."""
    x = torch.randn(4, 32)
    key = key_of(TWO) + "; "
    if native.native() is not None:
        native.put_operator(key, torch.get_num_threads(), name)
    with torch.no_grad():
        most, total = several([x], key)
    torch.testing.assert_close(most, x.amax(1))
    torch.testing.assert_close(total, x.sum(1))


@pytest.mark.parametrize(
    "made",
    [
        PRODUCT,
        TWO,
        PERMUTED,
        workload("matmul m=8 n=6 k=4 b=col"),
        workload('matmul m=8 n=6 k=4 epilogue="relu(x) + 1"'),
    ],
)
def test_a_key_says_all_of_its_workload(made) -> None:
    read = workload_of(key_of(made))
    assert read == made
    assert key_of(read) == key_of(made)
    assert [a.strides for a in read.operands] == [a.strides for a in made.operands]


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (lambda a, b: [a, b.t()], "operand 1 has shape (6, 16)"),
        (lambda a, b: [a, b.t().contiguous().t()], "strides (1, 16)"),
        (lambda a, b: [a, b.double()], "operand 1 is of another dtype, and has shape"),
        (lambda a, b: [a], "1 operands are given; allowed: 2"),
    ],
)
@pytest.mark.skipif(native.native() is None, reason="these are the words of C++")
def test_operands_that_do_not_fit_are_one_line(matrices, change, words: str) -> None:
    with torch.no_grad(), pytest.raises(RuntimeError) as caught:
        run(change(*matrices), key_of(PRODUCT))
    assert words in str(caught.value)
    assert "\n" not in str(caught.value)
    assert len(str(caught.value)) <= 200


def test_python_says_what_does_not_fit(matrices: list[torch.Tensor]) -> None:
    with pytest.raises(RuntimeError, match="allowed: float32 of shape"):
        operator._run([matrices[0], matrices[1].t()], key_of(PRODUCT))


def test_an_output_may_share_no_memory(matrices: list[torch.Tensor]) -> None:
    memory = torch.zeros(8 * 16)
    left = memory.view(8, 16)
    with torch.no_grad(), pytest.raises(RuntimeError, match="shares memory"):
        run.out([left, matrices[1]], key_of(PRODUCT), out=memory[:48].view(8, 6))


def test_an_unknown_key_is_no_kernel(matrices: list[torch.Tensor]) -> None:
    with torch.no_grad(), pytest.raises(RuntimeError, match="unknown operator 'nonsense'"):
        run(matrices, "nonsense m=3")


def test_torch_checks_the_operators(matrices: list[torch.Tensor]) -> None:
    out = torch.empty(8, 6)
    torch.library.opcheck(run.default, (matrices, key_of(PRODUCT)))
    torch.library.opcheck(run.out, (matrices, key_of(PRODUCT)), {"out": out})
    torch.library.opcheck(several.default, ([torch.randn(4, 32)], key_of(TWO)))


def test_without_values_strides_are_exact() -> None:
    with FakeTensorMode():
        made = run([torch.empty(4, 6)], key_of(PERMUTED))
    assert (made.shape, made.stride()) == ((6, 4), (1, 6))


def test_symbolic_sizes_are_bound_to_those_of_the_workload(matrices) -> None:
    shapes = ShapeEnv()
    with FakeTensorMode(shape_env=shapes) as mode:
        left = mode.from_tensor(matrices[0])
        assert not isinstance(left.shape[0], int)
        made = run([left, mode.from_tensor(matrices[1])], key_of(PRODUCT))
    assert made.shape == (8, 6)
    assert int(left.shape[0]) == 8
    with FakeTensorMode(), pytest.raises(RuntimeError, match="allowed: float32 of shape"):
        run([torch.empty(9, 16), torch.empty(16, 6)], key_of(PRODUCT))


def test_gradients_are_those_of_torch(matrices: list[torch.Tensor]) -> None:
    given = [each.clone().requires_grad_() for each in matrices]
    expected = [each.clone().requires_grad_() for each in matrices]
    for call in (lambda: run(given, key_of(PRODUCT)), lambda: run(*given, key_of(PRODUCT))):
        found, wanted = call(), expected[0] @ expected[1]
        torch.testing.assert_close(found, wanted)
        factor = torch.randn(8, 6)
        (found.square() * factor).sum().backward()
        (wanted.square() * factor).sum().backward()
    torch.testing.assert_close([g.grad for g in given], [e.grad for e in expected])


def test_gradients_of_some_operands_and_of_several_outputs() -> None:
    x = torch.randn(4, 32, requires_grad=True)
    most, total = several([x], key_of(TWO))
    (2 * most + total).sum().backward()
    expected = torch.ones(4, 32).scatter_add(1, x.argmax(1, keepdim=True), 2 * torch.ones(4, 1))
    torch.testing.assert_close(x.grad, expected)


def test_gradients_have_gradients() -> None:
    """Of a product, each of whose factors depends on the other's gradient."""
    a, b = torch.randn(8, 16, requires_grad=True), torch.randn(16, 6, requires_grad=True)
    results: list[torch.Tensor] = []
    for product in (lambda: run([a, b], key_of(PRODUCT)), lambda: a @ b):
        (first,) = torch.autograd.grad(product().square().sum(), a, create_graph=True)
        (second,) = torch.autograd.grad(first.sum(), b)
        results.append(second)
    torch.testing.assert_close(*results)


def test_training_graphs_take_the_operator_in(matrices: list[torch.Tensor]) -> None:
    """Forward and backward are traced as one, with the operator as a node."""
    graphs = []

    def keep(graph: torch.fx.GraphModule, _: object) -> torch.fx.GraphModule:
        graphs.append(graph)
        return graph

    left = matrices[0].clone().requires_grad_()
    traced = aot_function(lambda a, b: run(a, b, key_of(PRODUCT)), keep, keep)
    traced(left, matrices[1]).sum().backward()
    torch.testing.assert_close(left.grad, matrices[1].sum(1).expand(8, 16))
    assert [str(node.target) for node in graphs[0].graph.nodes].count("tilewright.run.of2") == 1


def test_autocast_casts_operands_to_the_dtypes_of_the_workload(matrices) -> None:
    half = workload("y[i,j] = sum[k](a[i,k] * b[k,j])", i=8, j=6, k=16, dtype="bfloat16")
    with torch.no_grad(), torch.autocast("cpu", torch.bfloat16):
        assert run(matrices, key_of(PRODUCT)).dtype == torch.float32
        found = run(matrices[0], matrices[1].bfloat16(), key_of(half))
        assert torch.equal(
            run([m.bfloat16() for m in matrices], key_of(PRODUCT)),
            run([m.bfloat16().float() for m in matrices], key_of(PRODUCT)),
        )
    assert found.dtype == torch.bfloat16
    torch.testing.assert_close(found, (matrices[0] @ matrices[1]).bfloat16(), rtol=0.05, atol=0.1)


def test_a_view_that_is_negated_counts_as_such(matrices: list[torch.Tensor]) -> None:
    turned = torch.complex(torch.zeros(8, 16), matrices[0]).conj().imag
    assert turned.is_neg()
    with torch.no_grad():
        found = run([turned.view(8, 16), matrices[1]], key_of(PRODUCT))
    torch.testing.assert_close(found, -(matrices[0] @ matrices[1]))


def test_threads_are_those_of_torch(matrices: list[torch.Tensor]) -> None:
    before = torch.get_num_threads()
    try:
        for threads in (1, 2):
            torch.set_num_threads(threads)
            with torch.no_grad():
                run(matrices, key_of(PRODUCT))
            assert functions.get(key_of(PRODUCT), "cpu", threads).target.threads == threads
    finally:
        torch.set_num_threads(before)


def test_another_function_may_take_over(matrices: list[torch.Tensor]) -> None:
    """Of another workload of the same arrays, so that one sees which is called."""
    threads = torch.get_num_threads()
    key = key_of(PRODUCT) + "; "
    doubled = workload("y[i,j] = sum[k](a[i,k] * b[k,j]) * 2", i=8, j=6, k=16)
    for made, factor in ((PRODUCT, 1), (doubled, 2)):
        operator.put(key, "cpu", threads, best(made, f"cpu:threads={threads}", None))
        with torch.no_grad():
            torch.testing.assert_close(run(matrices, key), factor * (matrices[0] @ matrices[1]))


@pytest.fixture
def fresh(monkeypatch: pytest.MonkeyPatch) -> Functions:
    """Functions of which none is made; what C++ keeps has other keys."""
    made = Functions()
    made.database = None
    monkeypatch.setattr(operator, "functions", made)
    return made


def test_torch_computes_what_may_not_be_built(fresh: Functions, matrices) -> None:
    fresh.build = "never"
    doubled = workload("y[i,j] = sum[k](a[i,k] * b[k,j]) * 2", i=8, j=6, k=16)
    out = torch.empty(8, 6)
    with torch.no_grad(), warnings.catch_warnings(record=True) as seen:
        warnings.simplefilter("always")
        found = run(matrices, key_of(doubled))
        run.of2_out(*matrices, key_of(doubled), out=out)
        run(matrices, key_of(doubled) + "; ")  # another key, which is not warned of again
    torch.testing.assert_close(found, 2 * (matrices[0] @ matrices[1]))
    assert torch.equal(found, out)
    assert ["torch computes it" in str(each.message) for each in seen] == [True]
    assert fresh._made == {}


def test_torch_computes_until_a_kernel_is_built(fresh: Functions, matrices) -> None:
    fresh.build = "background"
    tripled = workload("y[i,j] = sum[k](a[i,k] * b[k,j]) * 3", i=8, j=6, k=16)
    place = (key_of(tripled), "cpu", torch.get_num_threads())
    with torch.no_grad(), warnings.catch_warnings():
        warnings.simplefilter("ignore")
        before = run(matrices, key_of(tripled))
        assert fresh.known(*place) is None
        wait_for_builds()
        after = run(matrices, key_of(tripled))
    assert isinstance(fresh.known(*place), CpuFunction)
    torch.testing.assert_close([before, after], [3 * (matrices[0] @ matrices[1])] * 2)
