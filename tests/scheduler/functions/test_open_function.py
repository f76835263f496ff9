"""One kernel of any number of rows: equal to the program at every size, and never beyond it."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
import torch

from tilewright.scheduler.dispatch.family import Family, family_of
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.functions.open_function import OpenFunction
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import as_target
from tilewright.spaces.workloads.calling import calling_of
from tilewright.spaces.workloads.packing import unpack

LARGEST = 61
FEW = 16
"""Rows up to which products have other kernels."""
HEADS = {"h": 2, "n": 26, "k": 17}
FAMILIES = {
    "product": ("matmul", {"n": 70, "k": 50}),
    "epilogue": ("matmul", {"n": 70, "k": 50, "epilogue": "max(x + bias[m], 0) * r[m,n] + c[n]"}),
    "bfloat16": ("matmul", {"n": 33, "k": 50, "dtype": "bfloat16", "accumulator": "float32"}),
    "weights along the depth": ("y[m,n] = sum[k](a[m,k] * w[n,k])", {"n": 48, "k": 40}),
    "batch": ("bmm", {"m": 30, "n": 37, "k": 24, "epilogue": "max(x + bias[n], 0)"}),
    "batch of heads": ("y[b,h,m,n] = sum[k](x[b,h,m,k] * w[b,h,n,k])", {**HEADS, "m": 21}),
    "batch of few rows": ("y[b,h,m,n] = sum[k](x[b,h,m,k] * w[b,h,n,k])", {**HEADS, "m": 3}),
    "rows of groups": ("y[m,h,n] = sum[k](x[m,h,k] * w[n,k])", {**HEADS, "h": 3}),
    "softmax": ("softmax", {"c": 37}),
    "norm of heads": (
        "s[m,h] = sum[c](x[m,h,c] * x[m,h,c])\n"
        "y[m,h,c] = x[m,h,c] / sqrt(s[m,h] + 1) * g[c] + b[m]",
        {"h": 3, "c": 21},
    ),
    "attention": (
        "n: int32[b](index < 40)\nwhere j < n[b]\n"
        "y[b,h,i,e] = sum[j](softmax[j](sum[d](q[b,h,i,d] * k[b,h,j,d]) * 0.3) * v[b,h,j,e])",
        {"h": 2, "i": 5, "j": 39, "d": 8, "e": 9},
    ),
    "map": ("y[m,c] = x[m,c] * 2 + 1", {"c": 37}),
    "map with factors of columns": ("y[m,c] = max(x[m,c] * g[c] + b[m], 0)", {"c": 37}),
    "transposes of a batch": ("y[m,c,r] = x[m,r,c] * 2", {"r": 33, "c": 48}),
    "rows of a gather": ("t: int32[m](index < 9)\ny[m,c] = x[t[m],c]", {"c": 19}),
    "transposed rows and columns": ("y[m,i,j] = x[j,i] + z[m,j,i]", {"i": 32, "j": 64}),
    "rows of a table": ("t: int32[m](index < 9)\ny[m] = sum[c](x[t[m],c] * z[m,c])", {"c": 19}),
}

EXPECTED = {
    "product": lambda a, b: a @ b,
    "epilogue": lambda a, b, bias, r, c: np.maximum(a @ b + bias[:, None], 0) * r + c,
    "bfloat16": lambda a, b: a @ b,
    "weights along the depth": lambda a, w: a @ w.T,
    "batch": lambda a, b, bias: np.maximum(a @ b + bias, 0),
    "batch of heads": lambda x, w: x @ w.transpose(0, 1, 3, 2),
    "batch of few rows": lambda x, w: x @ w.transpose(0, 1, 3, 2),
    "rows of groups": lambda x, w: x @ w.T,
    "softmax": lambda x: np.exp(x) / np.exp(x).sum(axis=-1, keepdims=True),
    "norm of heads": lambda x, g, b: (
        x / np.sqrt((x * x).sum(-1, keepdims=True) + 1) * g + b[:, None, None]
    ),
    "map": lambda x: x * 2 + 1,
    "map with factors of columns": lambda x, g, b: np.maximum(x * g + b[:, None], 0),
    "transposes of a batch": lambda x: x.transpose(0, 2, 1) * 2,
    "rows of a gather": lambda t, x: x[t.astype(int)],
    "transposed rows and columns": lambda x, z: x.T + z.transpose(0, 2, 1),
    "rows of a table": lambda t, x, z: (x[t.astype(int)] * z).sum(-1),
}
AXES = {
    "softmax": "r",
    "attention": "b",
    "batch": "batch",
    "batch of heads": "b",
    "batch of few rows": "b",
}


def _attention(n, q, k, v):
    scores = np.einsum("bhid,bhjd->bhij", q, k) * 0.3
    scores[np.broadcast_to(np.arange(39) >= n[:, None, None, None], scores.shape)] = -np.inf
    with np.errstate(invalid="ignore"):
        weights = np.nan_to_num(np.exp(scores - scores.max(-1, keepdims=True)))
        return np.nan_to_num(weights / weights.sum(-1, keepdims=True)) @ v


EXPECTED["attention"] = _attention


def family(name: str) -> Family:
    return family_of(FAMILIES[name], AXES.get(name, "m"), as_profile(f"1-{LARGEST}:1"))


def functions(of: Family, count: int, threads: int = 2, **machine: int) -> list[OpenFunction]:
    space = space_for(of.at(LARGEST), replace(as_target(f"cpu:threads={threads}"), **machine))
    rows = space.sample(np.random.default_rng(7), 4 * count)
    schedules = [s for s in map(space.schedule, rows) if not space.why_not_open(s, of.own_axis)]
    return [OpenFunction(space, s, of.own_axis, of.inputs, of.outputs) for s in schedules[:count]]


FEW_ROWS = {
    "rows by columns": ("matmul", {"n": 70, "k": 200}),
    "epilogue": ("matmul", {"n": 70, "k": 200, "epilogue": "max(x + bias[m], 0) * r[m,n] + c[n]"}),
    "bfloat16": ("matmul", {"n": 33, "k": 201, "dtype": "bfloat16", "out": "float32"}),
    "weights along the depth": ("y[m,n] = sum[k](a[m,k] * w[n,k])", {"n": 48, "k": 200}),
    "packed weights": ("matmul", {"n": 70, "k": 200, "b": "packed"}),
}
FEW_EXPECTED = EXPECTED | {
    "rows by columns": EXPECTED["product"],
    "packed weights": lambda a, b: a @ unpack(b.astype("f4"), 70, 200).T,
}


def functions_of_few_rows(of: Family) -> list[OpenFunction]:
    """Return kernels that pack their rows, or not, and whose workers share the depth, or not."""
    space = space_for(of.at(FEW), as_target("cpu:threads=2"))
    rows = space.sample(np.random.default_rng(3), 64)
    ways = {}
    for schedule in map(space.schedule, rows):
        values = schedule.values
        ways[values["pack_left"], values["depth_workers"]] = schedule
    return [OpenFunction(space, s, of.axis, of.inputs, of.outputs) for s in ways.values()]


@pytest.mark.parametrize("name", FEW_ROWS)
def test_products_of_few_rows_are_open_in_all_their_ways(name):
    of = family_of(FEW_ROWS[name], "m", as_profile(f"1-{FEW}:1"))
    calls = functions_of_few_rows(of)
    assert len(calls) == 4
    for size in range(1, FEW + 1):
        arrays = given(of, size, size)
        wanted = FEW_EXPECTED[name](*(each.astype(np.float64) for each in arrays))
        for call in calls:
            whole = np.full((size + 2, *wanted.shape[1:]), 7.0, np.float32)
            call(*arrays, out=whole[1:-1])
            np.testing.assert_array_equal(whole[1:-1], wanted, str(call))
            assert (whole[[0, -1]] == 7.0).all()
    for size in (0, FEW + 1):
        arrays = [np.resize(a, (size, *a.shape[1:])) for a in given(of, 1)]
        with pytest.raises(InputError, match=f"allowed: 1 to {FEW}"):
            calls[0](*arrays)


def given(of: Family, size: int, seed: int = 0) -> list[np.ndarray]:
    draw = np.random.default_rng(seed).integers
    low = {"int32": 0}
    return [
        a.array(draw(low.get(a.dtype, -3), 4, a.shape).astype(float))
        for a in calling_of(of.at(size)).inputs
    ]


@pytest.mark.parametrize("name", FAMILIES)
def test_it_is_the_program_at_every_number_of_rows(name):
    of = family(name)
    made = functions(of, 3)
    assert len(made) == 3
    for size in range(1, LARGEST + 1, 3 if name == "product" else 7):
        arrays = given(of, size, size)
        wanted = EXPECTED[name](*(each.astype(np.float64) for each in arrays))
        for call in made:
            found = np.asarray(call(*arrays)).astype(np.float64)
            np.testing.assert_allclose(
                found, wanted, rtol=1e-2 if name == "bfloat16" else 2e-6, atol=1e-6
            )


@pytest.mark.parametrize("name", ["map", "transposes of a batch", "transposed rows and columns"])
def test_maps_past_the_caches_are_open_in_all_their_ways(name):
    of = family(name)
    calls = functions(of, 8, l1_bytes=4096, l2_bytes=32 << 10)
    assert len(calls) == 8
    for size in (1, 2, 16, 29, LARGEST):
        arrays = given(of, size, size)
        wanted = EXPECTED[name](*arrays)
        for call in calls:
            whole = np.full((size + 2, *wanted.shape[1:]), 7.0, np.float32)
            call(*arrays, out=whole[1:-1])
            np.testing.assert_array_equal(whole[1:-1], wanted)
            assert (whole[[0, -1]] == 7.0).all()


@pytest.mark.parametrize("size", [1, 2, 16, 17])
@pytest.mark.parametrize("name", FAMILIES)
def test_schedules_of_every_size_have_an_open_kernel_or_say_why(name, size):
    of = family(name)
    space = space_for(of.at(size), as_target("cpu"))
    for schedule in map(space.schedule, space.sample(np.random.default_rng(1), 4)):
        reason = space.why_not_open(schedule, of.axis)
        assert reason or space.lower_open(schedule, of.axis).call.open_axis == of.axis


def test_workers_share_the_rows_that_a_call_has():
    of = family("product")
    shared = [call for call in functions(of, 12) if call.schedule.values["row_workers"] == 2]
    assert shared
    for size in (1, 5, 30, LARGEST):
        a, b = given(of, size)
        for call in shared:
            np.testing.assert_allclose(call(a, b), a @ b)


def test_nothing_is_written_beyond_the_rows_of_a_call():
    of = family("product")
    (call,) = functions(of, 1)
    a, b = given(of, 9)
    whole = np.full((20, 70), 7.0, np.float32)
    assert call(a, b, out=whole[5:14]) is not None
    np.testing.assert_allclose(whole[5:14], a @ b)
    assert (np.delete(whole, range(5, 14), axis=0) == 7.0).all()


def test_tensors_are_taken_and_given_back():
    of = family("product")
    (call,) = functions(of, 1)
    a, b = map(torch.from_numpy, given(of, 4))
    assert torch.allclose(call(a, b), a @ b)


@pytest.mark.parametrize("rows", [0, LARGEST + 1])
def test_more_or_fewer_rows_are_refused(rows):
    of = family("product")
    (call,) = functions(of, 1)
    a, b = np.zeros((rows, 50), np.float32), np.zeros((50, 70), np.float32)
    with pytest.raises(InputError, match=f"allowed: 1 to {LARGEST}"):
        call(a, b)


def test_arrays_that_do_not_fit_are_refused():
    of = family("product")
    (call,) = functions(of, 1)
    a, b = given(of, 4)
    for wrong, says in (
        ((a[:, ::2], b), "A has|A is"),
        ((a, b.T), "B has|B is"),
        ((a.astype(np.float64), b), "A is float64"),
        ((a,), "takes A, B, each once; got 1 by position"),
        (([[1.0]], b), "A is a list; allowed: a NumPy array or a torch tensor"),
    ):
        with pytest.raises(InputError, match=says):
            call(*wrong)
    with pytest.raises(InputError):
        call(a, b, out=np.zeros((5, 70), np.float32))


@pytest.mark.parametrize(
    ("text", "axis", "reason"),
    [
        ("matmul m=64 n=64 k=64", "n", "n is not the rows"),
        ("softmax r=64 c=64", "c", "c is not the outermost axis"),
        ("softmax r=1 c=64", "r", "r is not the outermost axis"),
        ("matmul m=8 n=64 k=64", "k", "k is not the rows"),
        ("y[i]=sum[j](exp(x[i]-z[j])) i=64 j=64", "i", "fixed extents"),
        ("y[a,b]=x[a,b]+1 a=8 b=64", "b", "b is not the outermost axis"),
        ("y[a,b]=x[b,a]+1 a=8 b=64", "a", "a is not the outermost axis of x"),
        ("y[a,b]=x[a,b]+a a=8 b=64", "a", "the program computes with a"),
    ],
)
def test_what_cannot_be_open_says_why(text, axis, reason):
    name, *words = text.split()
    extents = {key: int(value) for key, value in (word.split("=") for word in words)}
    space = space_for(workload(name, **extents), as_target("cpu"))
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    with pytest.raises(InputError, match=reason):
        space.lower_open(schedule, axis)
