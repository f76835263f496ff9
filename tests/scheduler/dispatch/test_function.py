"""Functions of tables: right for every size, and confined to the arrays that they are given."""

from __future__ import annotations

import html
import math
import pickle
import sys
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from functools import cache
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pytest

from tests import databases
from tests.scheduler.dispatch.records import put
from tilewright import dispatch
from tilewright.measure.database import Database
from tilewright.scheduler.dispatch.costs import Torch, known_kernels
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.function import Dispatch, _Plan
from tilewright.scheduler.dispatch.making import Request, selected
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.table import Row, Table
from tilewright.spaces.errors import InputError
from tilewright.spaces.target import detect_target

TARGET = detect_target("cpu")
LAST = 50
TIMES = {1: 1e-4, 6: 1.5e-4, 20: 4e-4, 64: 1.2e-3}
FUSED = 'matmul n=24 k=16 epilogue="relu(x + bias[n]) + residual[m,n]"'
ENTRIES = '"t: int32[i](sorted < 9); y[i, j] = x[t[i], j] * s[i] + j; -> y" j=5'


NO_TORCH = Torch()


@cache
def table(text: str, axis: str = "m", torch: Torch = NO_TORCH) -> Table:
    """A table of kernels of four sizes, which needs pieces, and copies for the largest."""
    profile = as_profile(f"1-{LAST}:1")
    family = family_of(text, axis, profile)
    with TemporaryDirectory() as folder, Database(databases.empty(Path(folder))) as database:
        put(database, TIMES, TARGET, text, axis)
        known = known_kernels(family, profile, TARGET, database)
    largest = [each for each in known if each.size <= LAST]
    return selected(Request(family, profile, TARGET, 4), known, torch, largest)


@cache
def made(text: str, axis: str = "m") -> Dispatch:
    return Dispatch(table(text, axis))


def guarded(array: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """The array between rows of NaN (or of the largest whole numbers), and all of it."""
    fill = np.nan if array.dtype.kind == "f" else np.iinfo(array.dtype).max
    whole = np.full((len(array) + 8, *array.shape[1:]), fill, array.dtype)
    whole[4:-4] = array
    return whole[4:-4], whole


def is_untouched(whole: np.ndarray) -> bool:
    ends = np.concatenate([whole[:4], whole[-4:]])
    return bool(np.isnan(ends).all())


def test_products_are_right_for_every_size():
    rng = np.random.default_rng(0)
    b, bias = rng.standard_normal((16, 24), np.float32), rng.standard_normal(24, np.float32)
    call = made(FUSED)
    hows = set()
    for size in range(1, LAST + 1):
        a, _ = guarded(rng.standard_normal((size, 16), np.float32))
        residual, _ = guarded(rng.standard_normal((size, 24), np.float32))
        out, whole = guarded(np.zeros((size, 24), np.float32))
        expected = np.maximum(a @ b + bias, 0) + residual
        assert call(a, b, bias, residual, out=out) is out
        np.testing.assert_allclose(out, expected, rtol=1e-5, atol=1e-5)
        assert is_untouched(whole)
        np.testing.assert_array_equal(call(a, b, residual=residual, bias=bias), out)
        hows |= {(p.rows < p.size, p.first > 0) for p in call.table.pieces(size)}
    assert {(False, False), (True, False), (False, True)} <= hows


def test_softmax_is_right_for_every_size():
    rng = np.random.default_rng(0)
    call = made("softmax c=40", "r")
    for size in range(1, LAST + 1):
        x, _ = guarded(rng.standard_normal((size, 40), np.float32) * 3)
        out, whole = guarded(np.zeros((size, 40), np.float32))
        call(x, out=out)
        powers = np.exp(x - x.max(axis=1, keepdims=True))
        np.testing.assert_allclose(out, powers / powers.sum(axis=1, keepdims=True), rtol=1e-5)
        assert is_untouched(whole)


def test_tables_of_sorted_indices_stay_sorted_where_rows_are_padded():
    rng = np.random.default_rng(0)
    call = made(ENTRIES, "i")
    names = [array.name for array in call._inputs]
    x = rng.standard_normal((9, 5), np.float32)
    for size in range(1, LAST + 1):
        t, s = np.sort(rng.integers(0, 9, size, np.int32)), rng.standard_normal(size, np.float32)
        given = {"t": guarded(t)[0], "x": x, "s": guarded(s)[0]}
        expected = x[t] * s[:, None] + np.arange(5)
        np.testing.assert_allclose(call(*(given[n] for n in names)), expected, rtol=1e-5, atol=1e-6)


def test_torch_tensors_and_threads_that_call_at_once():
    torch = pytest.importorskip("torch", reason="needs the extra torch")
    call = made(FUSED)
    b, bias = torch.randn(16, 24), torch.randn(24)

    def agrees(size: int) -> bool:
        a, residual = torch.randn(size, 16), torch.randn(size, 24)
        return torch.allclose(
            call(a, b, bias, residual), (a @ b + bias).relu() + residual, atol=1e-4
        )

    with ThreadPoolExecutor(4) as pool:
        assert all(pool.map(agrees, [*range(1, LAST + 1, 4)] * 2))


def test_pieces_that_a_gpu_cannot_load_where_they_lie_are_copied():
    """Rows of ten bytes begin at a multiple of sixteen only eight by eight."""
    rows = (Row(1, 3, 4), Row(4, 7, 4), Row(8, 40, 8))
    half = replace(table("matmul n=8 k=5 dtype=float16"), rows=rows)
    copied = {
        size: [
            (piece.first, ports is not None)
            for piece, ports in _Plan(half, size, "cuda", {})._pieces
        ]
        for size in (3, 16, 17, 20)
    }
    assert copied[3] == [(0, True)]  # there are fewer rows than the kernel has
    assert copied[16] == [(0, False), (8, False)]
    assert copied[17] == [(0, False), (8, False), (13, True)]
    assert copied[20] == [(0, False), (8, False), (16, False)]
    assert not any(ports for _, ports in _Plan(half, 17, "cpu", {})._pieces)


def test_a_function_travels():
    call = pickle.loads(pickle.dumps(made(FUSED)))
    assert call.table == made(FUSED).table
    a, b = np.ones((7, 16), np.float32), np.ones((16, 24), np.float32)
    got = call(a, b, np.zeros(24, np.float32), np.zeros((7, 24), np.float32))
    assert (got == 16).all()


def arrays(size: int) -> list[np.ndarray]:
    shapes = [(size, 16), (16, 24), (24,), (size, 24)]
    return [np.ones(shape, np.float32) for shape in shapes]


@pytest.mark.parametrize(
    ("place", "given", "says"),
    [
        (0, np.ones((7, 17), np.float32), "A is float32 of shape (7, 17)"),
        (0, np.ones((7, 16)), "A is float64"),
        (0, np.ones((16, 7), np.float32).T, "A has strides"),
        (0, np.ones(7, np.float32), "A has the shape (7,)"),
        (0, None, "A is a NoneType; allowed: a NumPy array or a torch tensor"),
        (0, np.ma.masked_array(np.ones((7, 16), np.float32)), "A is a masked array"),
        (1, np.ones((17, 24), np.float32), "B is float32 of shape (17, 24)"),
        (3, np.ones((6, 24), np.float32), "residual is float32 of shape (6, 24)"),
        (3, np.ones((8, 24), np.float32), "residual is float32 of shape (8, 24)"),
        (2, [1.0] * 24, "bias is a list"),
    ],
)
def test_arrays_that_do_not_fit_are_refused_before_anything_is_written(place, given, says):
    call, inputs, out = made(FUSED), arrays(7), np.full((7, 24), 5, np.float32)
    inputs[place] = given
    with pytest.raises(InputError) as refused:
        call(*inputs, out=out)
    assert says in str(refused.value)
    assert (out == 5).all()


def test_outputs_that_do_not_fit():
    call, (a, b, bias, residual) = made(FUSED), arrays(7)
    both = np.ones((9, 24), np.float32)
    for out, says in (
        (both[2:], "shares memory with residual"),
        (np.ones((8, 24), np.float32), "of shape (8, 24)"),
        (np.broadcast_to(np.float32(1), (7, 24)), "strides"),
    ):
        with pytest.raises(InputError, match=says.replace("(", r"\(").replace(")", r"\)")):
            call(a, b, bias, both[:7], out=out)
    with pytest.raises(InputError, match="each once; got 2 by position"):
        call(a, b)
    with pytest.raises(InputError, match="each once"):
        call(a, b, bias, residual, more=a)


def test_sizes_beyond_the_table_and_those_of_torch():
    call = made(FUSED)
    for size in (0, LAST + 1):
        with pytest.raises(
            InputError, match=rf"m={size} is not in the table; allowed: 1 to {LAST}"
        ):
            call(*arrays(size))
        assert call.choose(size) is None
    taken = []

    def otherwise(*given, **named):
        taken.append((len(given[0]), sorted(named)))
        return "torch's"

    slow = table(FUSED, torch=Torch((20, 30), (0.5, 0.5)))
    assert {row.torch for row in slow.rows if row.first >= 20 and row.last <= 30} == {True}
    by_torch = Dispatch(slow, otherwise=otherwise)
    assert by_torch(*arrays(25)) == by_torch(*arrays(LAST + 1)) == "torch's"
    assert by_torch(*arrays(25), out=np.ones((25, 24), np.float32)) == "torch's"
    assert taken == [(25, []), (LAST + 1, []), (25, ["out"])]
    expected = made(FUSED)(*arrays(25))
    np.testing.assert_allclose(Dispatch(slow)(*arrays(25)), expected, rtol=1e-5)
    np.testing.assert_allclose(by_torch(*arrays(7)), expected[:7], rtol=1e-5)
    assert "torch" in by_torch.explain()


def test_what_it_says_of_itself():
    call = made(FUSED)
    assert repr(call).startswith("<Dispatch matmul n=24 k=16 epilogue=")
    assert repr(call).endswith(f"m=1 to {LAST}, by kernels of 1, 6, 20>")
    text = call.explain()
    for words in ("expected regret", "measured", "copied, whole, in pieces", f"m=1 to {LAST}"):
        assert words in text
    assert html.unescape(call._repr_html_()) == f"<pre>{text}</pre>"


def test_a_saved_table_is_loaded_with_its_kernels(tmp_path):
    path = tmp_path / "table.json"
    made(FUSED).save(path)
    loaded = Dispatch.load(path, "cpu")
    assert loaded.table == made(FUSED).table
    for size, function in loaded._functions.items():
        assert function.schedule == made(FUSED)._functions[size].schedule
    other = replace(TARGET, model="Another CPU")
    Dispatch(replace(loaded.table, target=other), target=TARGET).save(path)
    with pytest.warns(RuntimeWarning, match="was made for cpu Another CPU"):
        np.testing.assert_allclose(
            Dispatch.load(path, "cpu")(*arrays(9)), loaded(*arrays(9)), rtol=1e-6
        )


def test_without_a_database_all_is_estimated_and_kernels_are_right():
    call = dispatch("matmul n=24 k=16", "1-9:1", None, 2, target="cpu")
    assert {each.provenance for each in call.table.kernels} == {"estimated"}
    a, b = np.ones((5, 16), np.float32), np.ones((16, 24), np.float32)
    assert (call(a, b) == 16).all()
    assert math.isfinite(call.table.regret)
    assert "scipy" in sys.modules  # which calls do not need
