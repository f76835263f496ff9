"""What our calls hand to NVIDIA's driver, by one that only writes it down."""

from __future__ import annotations

import os

import pytest

from tests.measure.cuda.stub import build_stub, run_with_stub
from tilewright.spaces.kernel import WORKSPACE

pytestmark = pytest.mark.skipif(os.path.exists("/dev/nvidia0"), reason="there is a real driver")

LAUNCH = """
import json
import os
from pathlib import Path
from tilewright.measure.cuda.compilation import compile_cubin
from tilewright.measure.cuda.device import DeviceError, LoadError
from tilewright.measure.cuda.driver import open_device
from tilewright.spaces.cuda.abi import parameters
from tilewright.spaces.cuda.intrinsics import device_text
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernel import WORKSPACE, Call, Launch, Source, arguments
from tilewright.spaces.workloads.array import Array

device = open_device()
A, C = (Array(n, "bfloat16", (64, 128), (0, 1)) for n in "AC")
maps = (
    TensorMapSpec("A", "bfloat16", (128, 64), (256,), (64, 32), 128),
    TensorMapSpec(WORKSPACE, "float32", (64,), (), (32,)),
)
given = arguments([A], [C])
text = f'extern "C" __global__ void made({parameters(given, True, ["x", "y"])}) {{}}'
launch = Launch((6, 2, 1), (96, 1, 1), (2, 1, 1), 70000, maps)
made = Call("made", given, 512, 512, (launch,))
addresses = {name: device.allocate(20000) for name in ("A", "C", WORKSPACE)}
call = device.bind(made, Source("cuda", "", text), addresses)
call()
found = {"addresses": [hex(a) for a in addresses.values()]}
found["seconds"] = [device.seconds(call), device.seconds(call, 4, cold=False)]
device.write(addresses["A"], b"abc")
device.fill(addresses["A"] + 1, 0x5A, 1)
found["read"] = device.read(addresses["A"], 3).decode()
Path("FOLDER/bad").write_bytes(b"this is no cubin")
try:
    device.bind(made, Path("FOLDER/bad"), addresses)
except LoadError as error:
    found["bad"] = str(error)
os.environ["STUB_FAILS"] = "1"
try:
    call()
except DeviceError as error:
    found["fails"] = str(error)
found["name"] = [device.name, device.architecture, device.multiprocessors]
print(json.dumps(found))
"""


def test_a_launch_reaches_the_driver_as_it_is_meant(tmp_path):
    build_stub(tmp_path)
    script = LAUNCH.replace("FOLDER", str(tmp_path))
    found, log = run_with_stub(tmp_path, script, STUB_PARAMETERS="5")
    a, c, workspace = found["addresses"]
    assert found["name"] == ["NVIDIA H200", "sm_90a", 2]
    assert found["read"] == "aZc"
    assert found["bad"].startswith("CUDA_ERROR_INVALID_IMAGE")
    assert found["fails"].startswith("CUDA_ERROR_ILLEGAL_ADDRESS: an illegal memory access")
    assert found["seconds"] == pytest.approx([2e-3, 2e-3])
    assert log[0] == "attribute made 8 70000"
    # rank, base, dims/box/steps, byte strides, interleave, swizzle, fill: as cuda.h numbers them
    assert log[1] == f"map 9 2 {a} 128/64/1 64/32/1 +256 0 3 0"
    assert log[2] == f"map 7 1 {workspace} 64/32/1 0 0 0"
    launch = f"launch made 6,2,1 96,1,1 70000 0x2001 id4:2,1,1 {a} {c} {workspace} {a} {workspace}"
    assert log[3] == launch
    assert log[4] == "launch tw_sweep 8,1,1 256,1,1 0 0x2001"
    assert log[5:8] == ["event 0", launch, "event 0"]
    captured = ["event 1", launch, "event 1"] * 4  # 1 is CU_EVENT_RECORD_EXTERNAL
    assert log[8:] == ["begin 2", *captured, "end", "replay", "replay"]


WINDOWS = """
import ctypes, json
from tilewright.measure.cuda.launching import encode
from tilewright.spaces.cuda.tensor_map import TensorMapSpec

memory = ctypes.create_string_buffer(256)
aligned = -(-ctypes.addressof(memory) // 64) * 64
dims, strides = (64, 30, 26, 8), (128, 3840, 99840)
windows = {"lower": (-1, -2), "upper": (1, 2), "steps": (2, 3)}
spec = TensorMapSpec("A", "float16", dims, strides, (32, 64), 64, **windows)
encode(spec, 0x7000, aligned)
print(json.dumps("encoded"))
"""


def test_a_map_of_windows_reaches_the_driver_as_it_is_meant(tmp_path):
    _, log = run_with_stub(build_stub(tmp_path), WINDOWS)
    # rank, base, channels/pixels, dims/steps, byte strides, corners, interleave, swizzle, fill
    dims = "64/1 30/2 26/3 8/1 +128 +3840 +99840"
    assert log == [f"windows 6 4 0x7000 32/64 {dims} -1..1 -2..2 0 2 0"]


REFUSALS = """
import json
from tilewright.measure.cuda.device import DeviceError, LoadError, MemoryShortError
from tilewright.measure.cuda.driver import open_device
from tilewright.spaces.kernel import Call, Launch, Source

device = open_device()
text = 'extern "C" __global__ void made() {}'
found = {}

def launched(shared, threads=32, cluster=1):
    try:
        launch = Launch((cluster, 1, 1), (threads, 1, 1), (cluster, 1, 1), shared)
        device.bind(Call("made", (), launches=(launch,)), Source("cuda", "", text), {})()
        return "launched"
    except LoadError as error:
        return str(error)

for shared in (0, 49152, 49153, 49168, 50176, 50177, 232448, 232449):
    found[shared] = launched(shared)
found["threads"] = launched(0, 1056)
found["clusters"] = [launched(0, cluster=blocks) for blocks in (8, 16)]
try:
    device.allocate(1 << 40)
except MemoryShortError as error:
    found["memory"] = str(error)
print(json.dumps(found))
"""


def test_what_a_kernel_lacks_is_asked_for_and_what_is_not_taken_does_no_harm(tmp_path):
    build_stub(tmp_path)
    found, log = run_with_stub(tmp_path, REFUSALS)
    assert [found[str(size)] for size in (0, 49152, 49153, 49168, 50176, 50177, 232448)] == [
        "launched"
    ] * 7
    asked = [line for line in log if line.startswith("attribute")]
    assert asked[0] == "attribute made 8 49153", "48 KiB are there without asking"
    assert found["clusters"] == ["launched"] * 2
    assert asked[-1] == "attribute made 14 1", "clusters of 8 are there without asking"
    assert found["232449"].startswith("CUDA_ERROR_INVALID_VALUE")
    assert found["threads"].startswith("CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES")
    assert found["memory"].startswith("CUDA_ERROR_OUT_OF_MEMORY")


SEVERAL = """
import json
from tilewright.measure.cuda.driver import open_device
from tilewright.spaces.kernel import Call, Launch, Source

device = open_device()
text = "".join(f'extern "C" __global__ void {name}() {{}}' for name in ("first", "second"))
launches = (Launch((3, 1, 1), (32, 1, 1)), Launch((1, 1, 1), (64, 1, 1), entry="second"))
device.bind(Call("first", (), launches=launches), Source("cuda", "", text), {})()
print(json.dumps(None))
"""


def test_launches_of_one_call_are_queued_in_order(tmp_path):
    build_stub(tmp_path)
    _, log = run_with_stub(tmp_path, SEVERAL)
    started = [line.split()[1:4] for line in log if line.startswith("launch")]
    assert started == [["first", "3,1,1", "32,1,1"], ["second", "1,1,1", "64,1,1"]]


SERVE = """
import json
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.spaces.target import detect_target
try:
    CudaRunner(detect_target("cuda:sm_90a")).close()
    print(json.dumps("believed"))
except Exception as error:
    print(json.dumps(str(error)))
"""


KEPT = """
import json
import tilewright.measure.cuda.driver as driver
from tilewright.spaces.kernel import Call, Launch, Source

device, compiled = driver.open_device(), []
compile_cubin = driver.compile_cubin
driver.compile_cubin = lambda text, *rest: compiled.append(text) or compile_cubin(text, *rest)
driver.MOST_KEPT = 3  # the device's own, and two
launch = Launch((1, 1, 1), (32, 1, 1))
for name in "aabbacca":
    text = f'extern "C" __global__ void {name}() {{}}'
    device.bind(Call(name, (), launches=(launch,)), Source("cuda", "", text), {})()
print(json.dumps([text.split("void ")[-1][0] for text in compiled]))
"""


def test_our_own_kernels_are_compiled_once(tmp_path):
    build_stub(tmp_path)
    compiled, log = run_with_stub(tmp_path, KEPT)
    assert compiled == ["a", "b", "c", "a"]
    assert sum(line.startswith("launch") for line in log) == 8


def test_a_device_that_computes_nothing_is_not_believed(tmp_path):
    build_stub(tmp_path)
    found, log = run_with_stub(tmp_path, SERVE)
    assert found.startswith("no GPU to run on: NVIDIA H200 computes otherwise than NumPy")
    launched = [line.split()[1] for line in log if line.startswith("launch")]
    assert launched[:2] == ["tw_fill_A", "tw_fill_B"]
    assert launched[2].startswith("tw_expect_")


PIECES = """
import json
from tilewright.measure.calls import call_from_json, call_to_json
from tilewright.measure.cuda.driver import open_device
from tilewright.spaces.cuda.tensor_map import TensorMapSpec
from tilewright.spaces.kernel import WORKSPACE, Buffer, Call, Launch, Source, arguments
from tilewright.spaces.operators import workload

work = workload("matmul m=8 n=8 k=8")
between = Buffer("sums", WORKSPACE, 256, 512), Buffer("sums", WORKSPACE, 256, 512, False)
spec = TensorMapSpec("sums", "float32", (64,), (), (32,))
launches = (
    Launch((1, 1, 1), (32, 1, 1), buffers=(Buffer("A", "A", 256, written=False), between[0])),
    Launch((1, 1, 1), (32, 1, 1), tensor_maps=(spec,), entry="last",
           buffers=(between[1], Buffer("C", "C", 256))),
)
made = Call("first", arguments(work.inputs, work.outputs), 768, 0, launches)
there = call_from_json(json.loads(json.dumps(call_to_json(made))), work)
assert there == made
pointers = "float *a, float *b"
text = f'extern "C" __global__ void first({pointers}) {{}}'
text += f'extern "C" __global__ void last({pointers}, const __grid_constant__ TensorMap map) {{}}'
device = open_device()
addresses = {name: device.allocate(4096) for name in ("A", "B", "C", WORKSPACE)}
device.bind(there, Source("cuda", "", text), addresses)()
print(json.dumps(addresses))
"""


def test_a_launch_takes_its_own_pieces_of_memory(tmp_path):
    build_stub(tmp_path)
    found, log = run_with_stub(tmp_path, PIECES, STUB_PARAMETERS="2")
    sums = hex(found[WORKSPACE] + 512)
    assert next(line for line in log if line.startswith("map")).split()[3] == sums
    started = [line.split()[-2:] for line in log if line.startswith("launch")]
    assert started == [[hex(found["A"]), sums], [sums, hex(found["C"])]]
