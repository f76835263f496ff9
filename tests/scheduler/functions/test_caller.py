"""What calls a kernel at once, on which arrays, and what it leaves to a closer look."""

from __future__ import annotations

import subprocess

import numpy as np
import pytest
import torch

from tests.scheduler.functions.counted_calls import (
    FLOATS,
    Kernel,
    address,
    array,
    both,
    needs_exchange,
    transposition,
)
from tests.scheduler.functions.headers import HEADER, needs_header
from tilewright.scheduler.functions import caller as module
from tilewright.scheduler.functions import extension
from tilewright.scheduler.functions.arrays import Port
from tilewright.scheduler.functions.caller import (
    MOST_ARRAYS,
    SOURCE,
    admit_tensors,
    caller,
    compiled_module,
)
from tilewright.spaces.errors import InputError

pytestmark = needs_header


@both
def test_arrays_that_fit_are_called_with_at_once(kind):
    kernel = transposition()
    x, y = (kind(np.zeros(shape, np.float32)) for shape in ((6, 4), (4, 6)))
    assert kernel.call(x, out=y) is y
    assert kernel.calls == [([address(x), address(y)], None, 77)]
    assert kernel.seen == []


@both
@pytest.mark.parametrize(
    "given",
    [
        {"order": (1, 0)},
        {"leading": 9},
        {"order": (1, 0), "leading": 8},
        *({"dtype": d} for d in ("float64", "float16", "int8", "int32")),
    ],
)
def test_every_order_and_dtype_is_taken(kind, given):
    operand = array("x", 6, 4, **given)
    kernel = Kernel(operand, array("y", 6, 4))
    x = kind(operand.array(np.zeros((6, 4))))
    y = kind(np.zeros((6, 4), np.float32))
    assert kernel.call(x, out=y) is y
    assert kernel.seen == []


@needs_exchange
@pytest.mark.parametrize("dtype", ["bfloat16", "float8_e4m3fn", "float8_e5m2"])
def test_dtypes_that_numpy_lacks_are_taken(dtype):
    operand = array("x", 6, 4, dtype=dtype)
    kernel = Kernel(operand, array("y", 6, 4))
    kernel.call(torch.zeros(6, 4, dtype=getattr(torch, dtype)), out=torch.zeros(6, 4))
    kernel.call(operand.array(np.zeros((6, 4))), out=np.zeros((6, 4), np.float32))
    assert len(kernel.calls) == 2
    assert kernel.seen == []


@both
def test_the_step_along_one_element_means_nothing(kind):
    kernel = Kernel(array("x", 1, 4), array("y", 1, 4))
    row = kind(np.zeros((3, 8), np.float32)[::2][:1, :4])
    kernel.call(row, out=kind(np.zeros((1, 4), np.float32)))
    assert len(kernel.calls) == 1
    kernel.call(kind(np.zeros((1, 8), np.float32)[:, ::2]), out=row)
    assert len(kernel.seen) == 1


@both
@pytest.mark.parametrize("order", [(0, 1), (1, 0)])
def test_an_output_is_made_of_the_first_inputs_kind(kind, order):
    kernel = Kernel(array("x", 6, 4), array("y", 4, 6, order=order))
    x = kind(np.zeros((6, 4), np.float32))
    for named in ({}, {"out": None}):
        made = kernel.call(x, **named)
        assert type(made) is type(x)
        assert tuple(made.shape) == (4, 6)
        assert kernel.calls[-1][0] == [address(x), address(made)]
    assert kernel.seen == []


@both
def test_several_outputs_go_to_a_tuple(kind):
    kernel = Kernel(array("x", 6), array("y", 6), array("z", 6), outputs=2)
    x, y, z = (kind(np.zeros(6, np.float32)) for _ in range(3))
    out = (y, z)
    assert kernel.call(x, out=out) is out
    assert kernel.calls[0][0] == [address(one) for one in (x, y, z)]
    for unfit in (None, [y, z], (y,), (y, z, z), (y, y), (x, z), {"y": y, "z": z}):
        assert kernel.call(x, out=unfit) == "seen"
    assert kernel.call(x) == "seen"
    assert len(kernel.calls) == 1


def test_demands_are_checked():
    made = compiled_module().Caller
    good = np.array([2, 32, 4, 96, -1, 0, -1, 1, 24, 1], np.int64)
    for inputs, demands in (
        (1, good),
        (0, good[:-1]),
        (0, np.append(good, 0)),
        (-1, good),
        (0, good * [1, 1, 0, 1, 1, 1, 1, 1, 1, 1]),
        (0, good * [1, 1, 1, 1, 1, 1, 1, -1, 1, 1]),
        (0, good * [1, 1, 1, 1, 1, 1, 1, 2, 1, 1]),
        (0, good * [1, 1, 1, 1, -(2**31), 1, 1, 1, 1, 1]),
        (0, good * [1, 1, 3, 1, -1, 1, 1, 1, 1, 1]),
        (0, np.array([0, 16, 2, 48, 5, 0, -1, 1, 24, 1], np.int64)),
        (0, np.array([1, 16, 2, 48, 2**16, 0, -1, 1, 24, 1], np.int64)),
    ):
        with pytest.raises(ValueError, match="demands are eight numbers an array"):
            made(0, 0, inputs, (None,), demands.tobytes(), None, None, None, [], 0, None)


def test_more_arrays_than_there_is_room_for_are_looked_at_closely():
    ports = [Port(array(f"x{i}", 6)) for i in range(MOST_ARRAYS + 1)]

    def closely():
        raise InputError

    assert caller(0, 0, ports[:-1], ports[-1:], None, [], closely) is closely
    assert caller(0, 0, ports[:-2], ports[-1:], None, [], closely) is not closely


def test_it_compiles_without_a_warning(tmp_path):
    folders = (f"-I{HEADER.parent}", f"-isystem{np.get_include()}")
    flags = (*extension.FLAGS, "-Werror", *folders)
    command = ["gcc", *flags, SOURCE, "-o", tmp_path / "caller.so"]
    done = subprocess.run(command, capture_output=True, text=True)
    assert done.stderr == ""


def test_without_it_all_is_looked_at_closely(monkeypatch):
    monkeypatch.setattr(module, "compiled_module", lambda: None)
    kernel = transposition()
    assert kernel.call(FLOATS) == "seen"
    assert not admit_tensors.__wrapped__()
