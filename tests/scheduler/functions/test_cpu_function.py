"""Kernels of a CPU as functions: what they compute, and what they refuse."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
import pytest
import torch

from tests.scheduler.functions.cpu_functions import FUSED, arguments, check, function
from tilewright.spaces.errors import InputError


def test_numpy_arrays_in_and_out() -> None:
    call = function(**FUSED)
    result = call(*arguments(call.workload))
    assert isinstance(result, np.ndarray)
    check(call.workload, result)


def test_torch_tensors_in_and_out() -> None:
    call = function(**FUSED)
    result = call(*map(torch.from_numpy, arguments(call.workload)))
    assert isinstance(result, torch.Tensor)
    check(call.workload, result.numpy())


def test_the_result_goes_where_it_is_wanted() -> None:
    call = function(**FUSED)
    inputs = arguments(call.workload)
    out = np.full(call.workload.outputs[0].shape, np.nan, np.float32)
    assert call(*inputs, out=out) is out
    check(call.workload, out)
    tensor = torch.full(call.workload.outputs[0].shape, torch.nan)
    assert call(*inputs, out=tensor) is tensor
    check(call.workload, tensor.numpy())


def test_arrays_by_name() -> None:
    call = function(**FUSED)
    a, b, bias, residual = arguments(call.workload)
    check(call.workload, call(residual=residual, B=b, A=a, bias=bias))
    check(call.workload, call(a, b, residual=residual, bias=bias))


@pytest.mark.parametrize(
    ("count", "names"), [(3, []), (5, []), (4, ["bias"]), (3, ["scale"]), (3, ["A"])]
)
def test_a_missing_or_unknown_array_is_refused(count: int, names: list[str]) -> None:
    call = function(**FUSED)
    arrays = [*arguments(call.workload), np.zeros(1, np.float32)]
    with pytest.raises(InputError, match="takes A, B, bias, residual, each once"):
        call(*arrays[:count], **dict.fromkeys(names, arrays[-1]))


@pytest.mark.parametrize("layout", [{"a": "col"}, {"b": "col"}, {"c": "col"}])
def test_column_major_operands_are_fortran_arrays(layout: dict[str, str]) -> None:
    call = function(m=20, n=24, k=12, **layout)
    a, b = arguments(call.workload)
    assert a.flags.f_contiguous is ("a" in layout)
    result = call(a, b)
    assert result.flags.f_contiguous is ("c" in layout)
    check(call.workload, result)
    tensor = call(torch.from_numpy(a), torch.from_numpy(b))
    assert tensor.is_contiguous() is ("c" not in layout)
    check(call.workload, tensor.numpy())


def test_bfloat16_of_both_kinds() -> None:
    call = function(m=16, n=32, k=24, dtype="bfloat16")
    a, b = arguments(call.workload)
    result = call(a, b)
    assert result.dtype == call.workload.outputs[0].element.numpy
    check(call.workload, result)
    tensors = [torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (a, b)]
    tensor = call(*tensors)
    assert tensor.dtype is torch.bfloat16
    assert np.array_equal(tensor.view(torch.int16).numpy(), result.view(np.int16))


def unfit() -> dict[str, tuple[Any, str]]:
    """Values for A, a float32 matrix of 33 x 17, that will not do, and why."""
    good = np.zeros((33, 17), np.float32)
    return {
        "dtype": (good.astype(np.float64), "A is float64 of shape"),
        "byte order": (good.astype(">f4"), "A is >f4 of shape"),
        "shape": (good[:32], r"A is float32 of shape \(32, 17\); allowed: float32"),
        "order": (np.asfortranarray(good), r"A has strides \(4, 132\); allowed: \(68, 4\)"),
        "view": (np.zeros((33, 34), np.float32)[:, ::2], "A has strides"),
        "alignment": (
            np.zeros(33 * 17 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(33, 17),
            "A is not aligned",
        ),
        "list": (good.tolist(), "A is a list; allowed: a NumPy array"),
        "tensor dtype": (torch.zeros(33, 17, dtype=torch.float64), "A is torch.float64"),
        "tensor shape": (torch.zeros(17, 33), r"A is torch.float32 of shape \(17, 33\)"),
        "tensor order": (torch.zeros(17, 33).T, "A has strides"),
        "gradient": (torch.zeros(33, 17, requires_grad=True), "A requires gradients"),
        "device": (torch.zeros(33, 17, device="meta"), "A is on meta; allowed: cpu"),
    }


@pytest.mark.parametrize("what", unfit())
def test_an_unfit_array_is_refused(what: str) -> None:
    call = function(**FUSED)
    array, reason = unfit()[what]
    with pytest.raises(InputError, match=reason):
        call(array, *arguments(call.workload)[1:])


def test_a_parameter_passes_without_gradients() -> None:
    call = function(m=16, n=32, k=24)
    a, b = arguments(call.workload)
    weight = torch.nn.Parameter(torch.from_numpy(b))
    with torch.no_grad():
        check(call.workload, call(torch.from_numpy(a), weight).numpy())
    with pytest.raises(InputError, match="B requires gradients"):
        call(torch.from_numpy(a), weight)


def test_an_unfit_output_is_refused() -> None:
    call = function(**FUSED)
    inputs = arguments(call.workload)
    out = np.zeros((33, 40), np.float32)
    out.flags.writeable = False
    with pytest.raises(InputError, match="C is read-only"):
        call(*inputs, out=out)
    with pytest.raises(InputError, match="out shares memory with residual"):
        call(*inputs, out=inputs[-1])


def test_strides_of_single_elements_do_not_matter() -> None:
    call = function(m=1, n=48, k=32)
    a, b = arguments(call.workload)
    row = np.zeros((5, 32), np.float32)[::3][:1]
    row[:] = a
    assert row.strides != a.strides
    check(call.workload, call(row, b))


def test_threads_may_call_at_once() -> None:
    call = function(m=65, n=70, k=130)

    def repeat(seed: int) -> None:
        inputs, out = arguments(call.workload, seed), np.empty((65, 70), np.float32)
        for _ in range(30):
            out.fill(np.nan)
            check(call.workload, call(*inputs, out=out), seed)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(repeat, range(8)))
