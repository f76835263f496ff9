"""Kernels of programs as functions: several outputs, slices and indices."""

import pickle

import numpy as np
import pytest
import torch

from tilewright.scheduler.best import best
from tilewright.scheduler.functions.arrays import Port
from tilewright.scheduler.functions.caller import compiled_module
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.evaluation import evaluate
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.array import Array

TWO = workload("y[r,c] = x[r,c] * 2\nz[r,c] = x[r,c] + b[c]\n-> y, z", r=33, c=40)
GATHER = workload("embedding", t=12, d=40, words=7)
PAGES = workload(
    "n: int32[b](index < 54)\nt: int32[b,4](index < 9)\nk: float32[9,16,8]\nwhere j < n[b]\n"
    "y[b,e] = sum[j](softmax[j](sum[d](q[b,d] * k[t[b,j // 16],j % 16,d])) * v[b,j,e])",
    b=2, j=53, d=8, e=8,
)  # fmt: skip


@pytest.fixture(scope="module")
def two():
    return best(TWO, database=None)


@pytest.fixture(scope="module")
def gather():
    return best(GATHER, database=None)


def arrays(work, seed=1):
    inputs = work.make_inputs(seed)
    return [inputs[operand.name] for operand in work.inputs], evaluate(work.program, inputs)


def test_several_outputs_are_a_tuple(two):
    given, exact = arrays(TWO)
    found = two(*given)
    assert isinstance(found, tuple)
    for array, name in zip(found, "yz", strict=True):
        np.testing.assert_allclose(array, exact[name], rtol=1e-6)
    tensors = two(*map(torch.from_numpy, given))
    assert all(isinstance(tensor, torch.Tensor) for tensor in tensors)
    np.testing.assert_array_equal(tensors[1].numpy(), found[1])


@pytest.mark.parametrize("by", [tuple, list, lambda made: {"z": made[1], "y": made[0]}])
def test_several_outputs_go_where_they_are_asked_to(two, by):
    given, exact = arrays(TWO)
    made = [np.empty((33, 40), np.float32) for _ in range(2)]
    found = two(*given, out=by(made))
    assert found[0] is made[0]
    assert found[1] is made[1]
    np.testing.assert_allclose(made[1], exact["z"], rtol=1e-6)


def test_unfit_outputs_are_refused(two):
    (x, b), _ = arrays(TWO)
    y, z = (np.empty((33, 40), np.float32) for _ in range(2))
    for out in ((y,), y, {"y": y}, {"y": y, "z": z, "w": z}, (y, z, z)):
        with pytest.raises(InputError, match="out is to be y, z, each once"):
            two(x, b, out=out)
    with pytest.raises(InputError, match="z shares memory with y"):
        two(x, b, out=(y, y))
    with pytest.raises(InputError, match="y shares memory with x"):
        two(x, b, out=(x, z))
    with pytest.raises(InputError, match="z is float64"):
        two(x, b, out=(y, z.astype(np.float64)))


@pytest.mark.parametrize(
    ("text", "extents"),
    [
        ("y[c] = sum[r](workspace[r, c])", {"r": 400, "c": 8}),
        ("y[r, c] = sum[k](A[r, k] * B[k, c]) + workspace[r, c]", {"r": 40, "c": 48, "k": 64}),
        ("workspace[r, c] = softmax[c](buffers[r, c])", {"r": 9, "c": 300}),
    ],
)
def test_arrays_may_be_called_as_kernels_call_theirs(text, extents):
    work = workload(text, **extents)
    call = best(work, database=None, verify=True)
    given = work.make_inputs(1)
    found = call(**given)
    np.testing.assert_array_equal(found, call(*(given[o.name] for o in work.inputs)))


def test_an_index_beyond_its_table_is_refused(gather):
    given, exact = arrays(GATHER)
    (name,) = (output.name for output in GATHER.outputs)
    np.testing.assert_array_equal(gather(*given), exact[name])
    place = next(n for n, operand in enumerate(GATHER.inputs) if operand.drawn)
    for wrong in (-1, 7):
        spoilt = given[place].copy()
        spoilt[3] = wrong
        for index in (spoilt, torch.from_numpy(spoilt)):
            others = [torch.from_numpy(a) if index is not spoilt else a for a in given]
            others[place] = index
            with pytest.raises(InputError, match=f"the index {wrong}; allowed: 0 to 6"):
                gather(*others)


@pytest.mark.parametrize(
    ("name", "wrong", "says"),
    [
        ("n", 54, "n holds the index 54; allowed: 0 to 53"),
        ("n", -1, "n holds the index -1; allowed: 0 to 53"),
        ("t", 9, "t holds the index 9; allowed: 0 to 8"),
    ],
)
def test_lengths_and_pages_beyond_a_cache_are_refused(name, wrong, says):
    given = PAGES.make_inputs(0)
    call = best(PAGES, database=None)
    call(**given)
    spoilt = given | {name: np.where(given[name] == given[name].max(), wrong, given[name])}
    spoilt[name] = spoilt[name].astype(np.int32)
    with pytest.raises(InputError, match=says):
        call(**spoilt)


SEGMENTS = workload("grouped_matmul", t=12, n=8, k=8, experts=4)


@pytest.mark.parametrize("kind", [np.asarray, torch.from_numpy])
@pytest.mark.parametrize("work", [GATHER, PAGES, SEGMENTS], ids=["gather", "pages", "segments"])
def test_calls_at_once_say_of_wrong_indices_what_a_closer_look_says(work, kind):
    call = best(work, database=None)
    if (module := compiled_module()) is not None:
        assert isinstance(call.__call__, module.Caller)
    given, exact = arrays(work)
    (out,) = (output.name for output in work.outputs)
    np.testing.assert_allclose(call(*map(kind, given)), exact[out], rtol=1e-4, atol=1e-5)
    for place, operand in enumerate(work.inputs):
        if not operand.drawn:
            continue
        limits = np.iinfo(operand.element.numpy)
        entries = given[place].reshape(-1)
        for value in (limits.min, -1, operand.drawn.below, limits.max):
            spoilt = entries.copy()
            spoilt[-1] = value
            wrong = [*given[:place], spoilt.reshape(operand.shape), *given[place + 1 :]]
            with pytest.raises(InputError, match=f"{operand.name} holds the index {value}") as said:
                call(*map(kind, wrong))
            with pytest.raises(InputError) as closely:
                call._call.closely(*map(kind, wrong))
            assert str(said.value) == str(closely.value)
        if operand.drawn.sorted:
            falling = [*given[:place], entries[::-1].copy(), *given[place + 1 :]]
            with pytest.raises(InputError, match="is not sorted: it falls after entry"):
                call(*map(kind, falling))


def test_a_slice_is_taken_as_it_lies():
    port = Port(Array("x", "float32", (16, 24), (0, 1), leading=40), output=True)
    whole = np.zeros((16, 40), np.float32)
    assert port.address(whole[:, :24]) == whole.ctypes.data
    assert port.address(torch.from_numpy(whole)[:, :24]) == whole.ctypes.data
    assert port.bytes == (15 * 40 + 24) * 4
    port.address(port.empty_array())
    port.address(port.empty_tensor())
    with pytest.raises(InputError, match="x has strides"):
        port.address(np.ascontiguousarray(whole[:, :24]))


@pytest.mark.parametrize("dtype", ["float32", "bfloat16", "int8"])
def test_large_outputs_begin_at_lines_and_pass(dtype):
    port = Port(Array("y", dtype, (2048, 2100), (1, 0)), output=True)
    tensor = port.empty_tensor()
    assert port.address(tensor) % 64 == 0
    assert (tensor.shape, tensor.stride()) == ((2048, 2100), (1, 2048))
    assert bool((tensor.fill_(3) == 3).all())


def test_indices_for_a_gpu_are_checked_on_the_host_if_that_is_asked_for():
    call = best(GATHER, "cuda:sm_90a", None, check_indices=True)
    given = {name: torch.from_numpy(array) for name, array in GATHER.make_inputs(0).items()}
    with pytest.raises(InputError, match="is on cpu; allowed: cuda"):
        call(**given)
    given["token"][4] = 7
    with pytest.raises(InputError, match="token holds the index 7; allowed: 0 to 6"):
        call(**given)
    with pytest.raises(InputError, match="token holds indices to be checked; allowed: a torch"):
        call(given["token"].numpy(), given["table"])


def test_what_holds_no_indices_for_a_gpu_is_refused_in_a_line():
    call = best(GATHER, "cuda:sm_90a", None, check_indices=True)
    table = torch.from_numpy(GATHER.make_inputs(0)["table"])
    for token, says in (
        (torch.empty(0, dtype=torch.int32), r"token is torch.int32 of shape \(0,\)"),
        (torch.zeros(12, dtype=torch.bfloat16), "token is torch.bfloat16"),
        (torch.zeros(12, requires_grad=True), "token is torch.float32"),
        (torch.zeros(12, dtype=torch.int32, device="meta"), "token is a Tensor .*without elements"),
    ):
        with pytest.raises(InputError, match=says):
            call(token, table)


def test_pointers_that_do_not_end_at_the_number_of_entries_are_refused():
    text = "ptr: int32[r+1](sorted < e+1); y[r] = sum[e: ptr[r] <= e < ptr[r + 1]](x[e])"
    rows = workload(text, r=4, e=6)
    call, x = best(rows, "cpu", None), np.arange(6, dtype=np.float32)
    pointers = np.array([0, 2, 2, 3, 6], np.int32)
    np.testing.assert_allclose(call(pointers, x), [1, 0, 2, 12])
    for wrong, words in (
        ([0, 2, 2, 3, 5], "ptr ends at 5; allowed: 6"),
        ([0, 2, 1, 3, 6], "falls"),
    ):
        with pytest.raises(InputError, match=words):
            call(np.array(wrong, np.int32), x)


def test_a_sorted_table_for_a_gpu_that_falls_is_refused_if_that_is_asked_for():
    experts = workload("grouped_matmul t=64 n=64 k=64 experts=4 dtype=bfloat16")
    call = best(experts, "cuda:sm_90a", None, check_indices=True)
    tokens = torch.zeros(64, 64, dtype=torch.bfloat16)
    given = {o.name: tokens for o in experts.inputs}
    given["expert"] = torch.tensor([1] * 9 + [0] * 55, dtype=torch.int32)
    with pytest.raises(InputError, match="expert is not sorted: it falls after entry 8"):
        call(**given)


def test_without_a_check_calls_go_through_c_and_read_the_nearest_entry():
    call = best(GATHER, database=None, check_indices=False)
    given = GATHER.make_inputs(0)
    given["token"][:3] = 2**31 - 1, -(2**31), 7
    near = given | {"token": given["token"].clip(0, 6)}
    np.testing.assert_array_equal(call(**given), evaluate(GATHER.program, near)["y"])
    if (module := compiled_module()) is not None:
        assert isinstance(call.__call__, module.Caller)
    made = pickle.loads(pickle.dumps(call))
    assert not made.check_indices
    np.testing.assert_array_equal(made(**given), call(**given))
