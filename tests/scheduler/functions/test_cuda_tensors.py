"""Calls on torch tensors: checked each time, though most are only compared; without a GPU."""

from __future__ import annotations

import os

import pytest
import torch

from tests.measure.cuda.stub import build_stub, run_with_stub
from tests.scheduler.functions.headers import needs_header
from tilewright.scheduler.functions.cuda_arrays import TensorGuards, comparable

START = """
import json, math, os, threading
import torch
from tilewright.scheduler.functions import launcher
from tilewright.scheduler.functions.cuda_arrays import DevicePort
from tilewright.scheduler.functions.cuda_function import CudaFunction
from tilewright.scheduler.verification import draw
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

examined = 0  # arrays, by ports
by_port = DevicePort.device_address

def counted(port, array, stream):
    global examined
    examined += 1
    return by_port(port, array, stream)

DevicePort.device_address = counted
torch.Tensor.is_cuda = property(lambda tensor: True)  # the driver's stub takes the host's memory
torch._C._cuda_getCurrentRawStream = lambda device: current

def tensor(*shape, offset=0):
    memory = torch.zeros(1 << 13, dtype=torch.half)
    start = -memory.data_ptr() % 64 // 2 + offset
    return memory[start : start + math.prod(shape)].view(shape)

def function(workspace):
    fit = (s for s in drawn if (space.lower(s).call.workspace_bytes > 0) == workspace)
    found = CudaFunction(space, next(fit), "given")
    assert (found._call._start is not launcher.start) == COMPILED
    os.environ["STUB_PARAMETERS"] = str(4 + workspace)
    return found

work = workload("matmul", m=64, n=64, k=64, dtype="float16", epilogue="x + bias[n]")
space = space_for(work, detect_target("cuda:sm_90a"))
drawn = [s for s in draw(space, 60, 1) if s.template == "simt"]
a, b, bias, out = tensor(64, 64), tensor(64, 64), tensor(64), tensor(64, 64)
"""

CHECKS = """
if not GUARDS:
    del torch._C._dynamo.guards.TensorGuards
call = function(workspace=False)
weight = torch.nn.Parameter(b)

for current in (64, 80, 64):
    assert call(a, b, bias, out=out) is out
seen = [examined]
with torch.inference_mode():
    call(a, b, bias, out=out)
    call(a, b, bias, out=out)
call(a.view(64, 64), b, bias=bias, out=out)
seen.append(examined)
with torch.no_grad():
    call(a, weight, bias, out=out)
    call(a, weight, bias, out=out)
seen.append(examined)

errors = []
for *inputs, to in (
    (a, weight, bias, out),
    (a.detach().requires_grad_(), b, bias, out),
    (a, b.view(torch.int16), bias, out),
    (a, b.view(32, 128), bias, out),
    (a, b.t(), bias, out),
    (a, b, bias.numpy(), out),
    (a, b, bias, a),
    (a, b, bias, tensor(64, 64, offset=1)),
):
    try:
        call(*inputs, out=to)
    except InputError as error:
        errors.append(str(error).split(";")[0])
twice = tensor(64, 64)
call(twice, twice, bias, out=out)
call(a, b, bias)
thread = threading.Thread(target=call, args=(a, b, bias), kwargs={"out": out})
thread.start()
thread.join()
names = {"a": a, "b": b, "bias": bias, "out": out, "twice": twice}
places = {hex(array.data_ptr()): name for name, array in names.items()}
print(json.dumps({"errors": errors, "seen": seen, "places": places}))
"""

CAPTURE = """
call = function(workspace=True)
current = 64
call(a, b, bias, out=out)
call(a, b, bias, out=out)
os.environ["STUB_CAPTURING"] = "1"
call(a, b, bias, out=out)
call(a, b, bias, out=out)
os.environ["STUB_CAPTURING"] = "0"
before = examined
call(a, b, bias, out=out)
captured = examined - before
"""

FAILURE = """
from tilewright.measure.cuda.device import DeviceError
os.environ["STUB_FAILS"] = "1"
try:
    call(a, b, bias, out=out)
except DeviceError as error:
    print(json.dumps({"examined": captured, "failure": str(error)}))
"""

needs_stub = pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a real driver")
implementations = pytest.mark.parametrize(
    "compiled", [False, pytest.param(True, marks=needs_header)]
)

WITH_GUARDS, WITHOUT = [8, 12, 16], [12, 24, 32]  # arrays that are examined


@pytest.fixture(scope="module")
def stub(tmp_path_factory):
    return build_stub(tmp_path_factory.mktemp("stub"))


def calls(stub, script, compiled):
    """What ``script`` found, and the words of each launch in the driver's log."""
    start = START.replace("COMPILED", str(compiled))
    compiler = {} if compiled else {"CC": "/nonexistent/cc"}
    found, log = run_with_stub(stub, start + script, **compiler)
    return found, [line.split() for line in log if line.startswith("launch")]


@needs_stub
@pytest.mark.parametrize(
    ("guards", "seen", "compiled"),
    [
        pytest.param(True, WITH_GUARDS, True, marks=needs_header),
        (False, WITHOUT, False),
        pytest.param(False, WITHOUT, True, marks=[needs_header, pytest.mark.slow]),
        pytest.param(True, WITH_GUARDS, False, marks=pytest.mark.slow),
    ],
)
def test_every_call_is_checked_with_and_without_the_guards_of_torch(stub, guards, seen, compiled):
    found, launches = calls(stub, CHECKS.replace("GUARDS", str(guards)), compiled)
    assert found["seen"] == seen
    streams = [next(word for word in line if word in ("0x40", "0x50")) for line in launches]
    assert streams == ["0x40", "0x50"] + ["0x40"] * 9
    places = [[found["places"].get(word, "new") for word in line[-4:]] for line in launches]
    assert places[:8] == [["a", "b", "bias", "out"]] * 8
    assert places[8:10] == [["twice", "twice", "bias", "out"], ["a", "b", "bias", "new"]]
    assert places[10] == places[0], "of a thread that came without a context"
    assert found["errors"] == [
        "B requires gradients, kernels have none",
        "A requires gradients, kernels have none",
        "B is torch.int16 of shape (64, 64)",
        "B is torch.float16 of shape (32, 128)",
        "B has strides (1, 64)",
        "bias is not on a GPU",
        "out shares memory with A",
        "C is not aligned to 16 bytes",
    ]


@needs_stub
@implementations
def test_a_capture_has_a_workspace_of_its_own_and_a_failure_the_drivers_words(stub, compiled):
    found, launches = calls(stub, CAPTURE + FAILURE, compiled)
    first, again, captured, recaptured, eager = [line[-1] for line in launches[:5]]
    assert first == again == eager
    assert len({first, captured, recaptured}) == 3
    words = "CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access was encountered"
    assert found == {"examined": 0, "failure": words}


A, B = torch.zeros(4, 6), torch.zeros(6, 6)


def test_tensors_are_alike_wherever_they_lie():
    known = TensorGuards((A, B))
    assert known.alike(A, B)
    assert known.alike(torch.zeros(8, 6)[4:], torch.zeros(6, 6))
    with torch.no_grad():
        assert known.alike(A, B)


@pytest.mark.parametrize(
    "other",
    [
        B.int(),
        B[:5],
        B[None],
        B.t(),
        torch.zeros(6, 7)[:, :6],
        B.to("meta"),
        B.clone().requires_grad_(),
        torch.nn.Parameter(B),
        torch._neg_view(B),
        torch._efficientzerotensor(6, 6),
        B.to_sparse_csr(),
        B.as_subclass(type("Special", (torch.Tensor,), {})),
        B.numpy(),
        None,
    ],
)
def test_what_differs_is_not_alike(other):
    assert not TensorGuards((A, B)).alike(A, other)


def test_parameters_are_alike_only_while_there_are_no_gradients():
    weight = torch.nn.Parameter(B)
    with torch.no_grad():
        known = TensorGuards((A, weight))
        assert known.alike(A, weight)
    assert not known.alike(A, weight)


def test_one_tensor_twice_and_subclasses_are_not_compared():
    assert comparable((A, B, torch.nn.Parameter(B)))
    assert not comparable((A, A))
    assert not comparable((A, A.as_subclass(type("Special", (torch.Tensor,), {}))))
    assert not comparable((A, B.numpy()))
