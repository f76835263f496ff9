"""Functions on arrays of a GPU: what they accept, keep and hand to the driver; without a GPU."""

from __future__ import annotations

import os

import numpy as np
import pytest
import torch

from tests.measure.cuda.stub import build_stub, run_with_stub
from tilewright.scheduler.best import best
from tilewright.scheduler.functions.cuda_arrays import DevicePort, check_one_device
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.workloads.matmul import Operand

ROWS = Operand("A", "float16", (3, 5), (0, 1), axes=("m", "k"))
COLUMNS = Operand("A", "float16", (3, 5), (1, 0), axes=("m", "k"))


class Interface:
    """An array by ``__cuda_array_interface__``."""

    def __init__(self, shape, typestr="<f2", strides=None, address=4096, read_only=False):
        self.__cuda_array_interface__ = {
            "shape": shape,
            "typestr": typestr,
            "strides": strides,
            "data": (address, read_only),
            "version": 3,
        }


class OnGpu:
    """A tensor of the CPU that says it is on a GPU, for reading its DLPack description."""

    def __init__(self, tensor, device=(2, 0)):
        self.tensor, self.device, self.stream = tensor, device, None

    def __dlpack_device__(self):
        return self.device

    def __dlpack__(self, stream=None):
        self.stream = stream
        return self.tensor.__dlpack__()


@pytest.mark.parametrize(
    ("operand", "array"),
    [
        (ROWS, Interface((3, 5))),
        (ROWS, Interface((3, 5), strides=(10, 2))),
        (COLUMNS, Interface((3, 5), strides=(2, 6))),
    ],
)
def test_an_array_interface_passes(operand, array):
    assert DevicePort(operand).device_address(array, 0) == 4096


@pytest.mark.parametrize(
    ("array", "words"),
    [
        (Interface((5, 3)), r"A is <f2 of shape \(5, 3\); allowed: float16 of shape \(3, 5\)"),
        (Interface((3, 5), "<f4"), "A is <f4"),
        (Interface((3, 5), strides=(2, 6)), r"strides \(2, 6\); allowed: \(10, 2\)"),
        (OnGpu(torch.zeros(3, 5, dtype=torch.half), (1, 0)), "A is not on a GPU"),
        (OnGpu(torch.zeros(3, 5)), "A is float32 of shape"),
        (OnGpu(torch.zeros(3, 4, dtype=torch.half)), "A is float16 of shape"),
        (OnGpu(torch.zeros(5, 3, dtype=torch.half).T), r"strides \(1, 3\); allowed: \(5, 1\)"),
        (torch.zeros(3, 5, dtype=torch.half), "A is on cpu; allowed: cuda"),
        (torch.zeros(3, 5), "A is torch.float32 of shape"),
        (torch.zeros(5, 3, dtype=torch.half).T, r"strides \(1, 3\)"),
        (object(), "A is a object; allowed: a CUDA torch tensor"),
    ],
)
def test_what_does_not_fit_is_refused(array, words):
    with pytest.raises(InputError, match=words):
        DevicePort(ROWS).device_address(array, 0)


def test_what_is_read_only_is_no_output():
    array = Interface((3, 5), read_only=True)
    assert DevicePort(ROWS).device_address(array, 0) == 4096
    with pytest.raises(InputError, match="A is read-only"):
        DevicePort(ROWS, output=True).device_address(array, 0)


def test_arrays_on_two_gpus_are_refused():
    """A kernel that reads another GPU's memory ends with an error that no call survives."""
    work = workload("matmul", m=64, n=64, k=64, dtype="float16")
    call = best(work, "cuda:sm_90a", None)
    a, b, c = (
        OnGpu(torch.zeros(o.shape, dtype=torch.half), (2, place))
        for o, place in zip(work.operands, (1, 0, 1), strict=True)
    )
    with pytest.raises(InputError, match="B is on GPU 0, A on GPU 1; allowed: one GPU for all"):
        call(a, b, out=c)


def test_an_array_that_does_not_say_where_it_is_may_be_anywhere():
    ports = [DevicePort(ROWS)] * 3
    half = torch.zeros(3, 5, dtype=torch.half)
    check_one_device(ports, [Interface((3, 5)), OnGpu(half, (2, 1)), OnGpu(half, (13, 1))])


KINDS = ("float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "float8_e5m2", "int8")


@pytest.mark.parametrize("kind", KINDS)
def test_dlpack_descriptions_are_read(kind):
    operand = Operand("A", kind, (3, 5), (1, 0), axes=("m", "k"))
    whole = torch.zeros(40, dtype=getattr(torch, kind))
    tensor = whole[5:20].view(5, 3).T
    array = OnGpu(tensor, (2, 1))
    assert DevicePort(operand).device_address(array, 77) == tensor.data_ptr()
    assert array.stream == 77
    DevicePort(operand).device_address(array, 0)
    assert array.stream == 1  # the default stream's name in DLPack


CALLS = """
import json, sys
sys.path.insert(0, "ROOT")
from tests.scheduler.functions.test_cuda_function import Interface
from tilewright.scheduler.functions.cuda_function import CudaFunction
from tilewright.scheduler.verification import draw
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

work = workload("matmul", m=64, n=256, k=1024, dtype="float16", epilogue="x + bias[n]")
space = space_for(work, detect_target("cuda:sm_90a"))
drawn = draw(space, 60, 1)
splits = lambda s: s.values.get("splits", s.values.get("split", 1))
schedule = next(s for s in drawn if (space.lower(s).call.workspace_bytes > 0) == WORKSPACE
                and s.template == "TEMPLATE")
call = CudaFunction(space, schedule, "given")
a, b, bias = (Interface(o.shape, "<f2", address=1 << (20 + i)) for i, o in
              enumerate(work.inputs))
shape = work.outputs[0].shape
out = Interface(shape, "<f2", address=1 << 30)
assert call(a, b, bias, out=out, stream=64) is out
assert call(a, b, bias=bias, out=out, stream=64) is out
call(a, b, bias, out=out, stream=80)
other = Interface(work.matmul.factors[0].shape, "<f2", address=1 << 25)
call(other, b, bias, out=out, stream=80)
"""

THREAD = """
import threading
thread = threading.Thread(target=lambda: call(a, b, bias, out=out, stream=64))
thread.start()
thread.join()
errors = []
for arguments in (
    {"arrays": (a, b), "out": out},
    {"arrays": (a, b, bias)},
    {"arrays": (a, b, bias), "out": Interface(shape, "<f2", address=(1 << 20) + 64)},
    {"arrays": (a, b, bias), "out": Interface(shape, "<f2", address=(1 << 30) + 2)},
):
    try:
        call(*arguments["arrays"], out=arguments.get("out"), stream=64)
    except InputError as error:
        errors.append(str(error))
print(json.dumps({"errors": errors}))
"""

CAPTURE = """
import os
os.environ["STUB_CAPTURING"] = "1"
call(a, b, bias, out=out, stream=80)
call(a, b, bias, out=out, stream=80)
os.environ["STUB_CAPTURING"] = "0"
call(a, b, bias, out=out, stream=80)
print(json.dumps({"kept": call._call._prepared.count, "captured": len(call._call._captured)}))
"""

needs_stub = pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a real driver")


def calls(tmp_path, template: str, workspace: bool, more: str, parameters: int):
    build_stub(tmp_path)
    root = os.getcwd()
    script = (CALLS + more).replace("WORKSPACE", str(workspace)).replace("ROOT", root)
    script = script.replace("TEMPLATE", template)
    found, log = run_with_stub(tmp_path, script, STUB_PARAMETERS=str(parameters))
    return found, [line for line in log if line.startswith(("launch", "map"))]


@needs_stub
def test_launches_are_prepared_once_for_a_stream_and_addresses(tmp_path):
    found, log = calls(tmp_path, "hopper", False, THREAD, 4)
    launches = [line.split() for line in log if line.startswith("launch")]
    maps = [line for line in log if line.startswith("map")]
    streams = [next(word for word in line if word in ("0x40", "0x50")) for line in launches]
    assert streams == ["0x40", "0x40", "0x50", "0x50", "0x40"]
    addresses = [[word for word in line if word.startswith("0x")][-4:] for line in launches]
    usual = ["0x100000", "0x200000", "0x400000", "0x40000000"]
    assert addresses == [usual, usual, usual, ["0x2000000", *usual[1:]], usual]
    assert len(maps) % 3 == 0  # encoded for three of the five calls
    assert [error.split(";")[0] for error in found["errors"]] == [
        "the kernel takes A, B, bias, each once",
        "out is needed where the inputs are no torch tensors",
        "out shares memory with A",
        "C is not aligned to 16 bytes",
    ]


@needs_stub
def test_streams_and_captures_have_workspaces_of_their_own(tmp_path):
    found, log = calls(tmp_path, "simt", True, CAPTURE, 5)
    launches = [line.split() for line in log if line.startswith("launch")]
    workspaces = [line[-1] for line in launches]
    first, again, second, other, captured, recaptured, eager = workspaces
    assert first == again
    assert second == other == eager != first
    assert len({first, second, captured, recaptured}) == 4
    assert found == {"kept": 3, "captured": 2}


@needs_stub
def test_a_thread_without_a_context_gets_one_before_anything_else(tmp_path):
    found, log = calls(tmp_path, "simt", True, THREAD, 5)
    workspaces = [line.split()[-1] for line in log if line.startswith("launch")]
    assert len(workspaces) == 5
    assert workspaces[-1] == workspaces[0]
    assert len(found["errors"]) == 4


@needs_stub
def test_the_best_kernel_compiles_without_a_gpu_and_says_so_when_called():
    work = workload("matmul", m=64, n=64, k=64, dtype="float16")
    call = best(work, "cuda:sm_90a", None)
    assert call.provenance == "predicted"
    assert "__global__" in call.source
    a, b, c = (Interface(o.shape, address=1 << (20 + i)) for i, o in enumerate(work.operands))
    with pytest.raises(InputError, match="runs on a GPU with its driver"):
        call(a, b, out=c)


def test_numpy_is_not_on_a_gpu():
    with pytest.raises(InputError, match="A is not on a GPU"):
        DevicePort(ROWS).device_address(np.zeros((3, 5), np.float16), 0)


SEVERAL = """
import json, sys
sys.path.insert(0, "ROOT")
from tests.scheduler.functions.test_cuda_function import Interface
from tilewright.scheduler.functions.cuda_function import CudaFunction
from tilewright.scheduler.verification import draw
from tilewright.spaces.kernel import WORKSPACE
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

work = workload("gated_matmul m=64 n=256 k=64 dtype=float16")
space = space_for(work, detect_target("cuda:sm_90a"))
own = lambda s: any(b.name == WORKSPACE for l in space.lower(s).call.launches for b in l.buffers)
found = (s for s in draw(space, 60, 1) if s.template == "staged" and not own(s))
call = CudaFunction(space, next(found), "given")
arrays = [Interface(o.shape, "<f2", address=(i + 1) << 20) for i, o in enumerate(work.inputs)]
shape = work.outputs[0].shape
out = Interface(shape, "<f2", address=1 << 30)
for stream in (64, 64, 80):
    assert call(*arrays, out=out, stream=stream) is out
print(json.dumps(None))
"""


@needs_stub
def test_launches_of_a_call_share_its_workspace(tmp_path):
    build_stub(tmp_path)
    script = SEVERAL.replace("ROOT", os.getcwd())
    _, log = run_with_stub(tmp_path, script, STUB_PARAMETERS="3")
    launches = [line.split()[-3:] for line in log if line.startswith("launch")]
    gates, ups = launches[::2], launches[1::2]
    assert {tuple(gate[:2]) for gate in gates} == {("0x100000", "0x200000")}
    assert {tuple(up[:2]) for up in ups} == {("0x100000", "0x300000")}
    between = [gate[2] for gate in gates]
    assert between == [up[2] for up in ups]
    assert between[0] == between[1] != between[2]
