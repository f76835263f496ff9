"""Operators take keys with an open axis: tables choose their kernels."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

torch = pytest.importorskip("torch")

from torch import Tensor  # noqa: E402

from tests.scheduler.dispatch.records import a_schedule, put  # noqa: E402
from tilewright import Database, Dispatch, InputError, detect_target  # noqa: E402
from tilewright.scheduler.dispatch.keeping import keep  # noqa: E402
from tilewright.scheduler.dispatch.making import dispatch_table  # noqa: E402
from tilewright.scheduler.dispatch.open_kernels import time_open  # noqa: E402
from tilewright.scheduler.torch.kernels.functions import functions  # noqa: E402
from tilewright.scheduler.torch.kernels.open_keys import family_of_key  # noqa: E402
from tilewright.scheduler.torch.operator.evaluation import TorchFunctions  # noqa: E402

TARGET = detect_target("cpu", 1)
OPEN = "matmul m=* n=36 k=20"
PROGRAM = (
    "axes a0=*, a1=36, a2=20; x0: float32[a0, 20]; x1: float32[20, 36]; "
    "y[a0, a1] = sum[a2](x0[a0, a2] * x1[a2, a1])"
)
run = torch.ops.tilewright.run


@pytest.fixture(autouse=True)
def _by_records(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """One thread, and a database with kernels of two sizes, of which a table was kept."""
    before, path = torch.get_num_threads(), tmp_path / "known.db"
    with Database(path) as database:
        put(database, {4: 1e-6, 16: 3e-6}, TARGET, "matmul n=36 k=20")
        keep(dispatch_table("matmul n=36 k=20", "1-16:1", database, target=TARGET), database)
    monkeypatch.setattr(functions, "database", path)
    torch.set_num_threads(1)
    yield
    torch.set_num_threads(before)
    for key, kind, threads in [*functions._made]:
        if "36" in key:
            del functions._made[key, kind, threads]


def operands(rows: int) -> list[Tensor]:
    return [torch.randn(rows, 20), torch.randn(20, 36)]


@pytest.mark.parametrize("key", [OPEN, PROGRAM])
def test_a_call_of_any_size_is_served(key: str) -> None:
    for rows in (1, 4, 7, 16, 40, 0):
        a, b = operands(rows)
        torch.testing.assert_close(run([a, b], key), a @ b, rtol=1e-4, atol=1e-5)
        out = torch.empty(rows, 36)
        run.out([a, b], key, out=out)
        torch.testing.assert_close(out, a @ b, rtol=1e-4, atol=1e-5)
    made = functions.get(key, "cpu", 1)
    assert isinstance(made, Dispatch)
    assert isinstance(made.otherwise, TorchFunctions)
    assert made.table.last == 16


MAP = "axes a0=*, a1=36; x0: float32[a0, 36]; y[a0, a1] = x0[a0, a1] * 2 + 1"
KEYS = (
    "axes a0=*, a1=2, a2=16, a3=36; x0: float32[2, 16]; x1: float32[a0, 2, 16]; "
    "x2: float32[a0, 36]; y[a1, a3] = sum[a0](softmax[a0](sum[a2](x0[a1, a2] * x1[a0, a1, a2]))"
    " * x2[a0, a3])"
)


@pytest.mark.parametrize(
    ("key", "shapes", "expected"),
    [
        (MAP, lambda n: [(n, 36)], lambda x: x * 2 + 1),
        (
            KEYS,
            lambda n: [(2, 16), (n, 2, 16), (n, 36)],
            lambda q, k, v: torch.einsum("hd,jhd->hj", q, k).softmax(1) @ v,
        ),
    ],
)
def test_maps_and_keys_of_attention_are_open_by_one_kernel(key, shapes, expected) -> None:
    family = family_of_key(key)
    about = (TARGET, str(family), family.axis)
    with Database(functions.database) as database:
        put(database, {40: 1e-6}, *about)
        time_open(family, 40, [a_schedule(40, *about)], TARGET, database)
    for size in (1, 7, 16, 17, 39, 40, 41):
        operands = [torch.randn(shape) for shape in shapes(size)]
        wanted = expected(*operands)
        torch.testing.assert_close(run(operands, key), wanted, rtol=1e-4, atol=1e-5)
    made = functions.get(key, "cpu", 1)
    assert isinstance(made, Dispatch)
    assert [(row.first, row.last, row.size) for row in made.table.rows] == [(1, 40, 40)]
    assert made.table.open_sizes == {40}


def test_the_key_of_one_size_is_served_by_a_table_where_nobody_measured_it() -> None:
    for rows, kind in ((7, Dispatch), (16, None)):
        a, b = operands(rows)
        key = f"matmul m={rows} n=36 k=20"
        torch.testing.assert_close(run([a, b], key), a @ b, rtol=1e-4, atol=1e-5)
        assert isinstance(functions.get(key, "cpu", 1), Dispatch) is (kind is Dispatch)


def test_both_writings_are_one_family() -> None:
    assert family_of_key(OPEN).key == family_of_key(PROGRAM).key
    assert family_of_key(OPEN).key != family_of_key(OPEN.replace("36", "37")).key


def test_gradients_and_autocast() -> None:
    a, b = (each.requires_grad_() for each in operands(5))
    run([a, b], OPEN).sum().backward()
    torch.testing.assert_close(a.grad, b.detach().sum(1).expand(5, 20))
    with torch.autocast("cpu", torch.bfloat16), torch.no_grad():
        half = [each.to(torch.bfloat16) for each in (a, b)]
        assert run(half, OPEN).dtype is torch.float32


def test_what_does_not_fit_is_refused() -> None:
    a, b = operands(5)
    for given in ([a], [a, b[:5]], [b, a]):
        with pytest.raises(RuntimeError, match="tilewright"):
            run(given, OPEN)
    for key in ("matmul m=* n=* k=20", "matmul m=7 n=36 k=*", "softmax r=4 c=*"):
        with pytest.raises(InputError) as caught:
            family_of_key(key)
        assert len(str(caught.value)) <= 200


def test_the_operators_pass_opcheck() -> None:
    a, b = operands(5)
    torch.library.opcheck(run.default, ([a, b], OPEN))
    torch.library.opcheck(run.of2, (a, b, OPEN))
