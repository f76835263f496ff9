"""Calls whose arrays hold indices: looked at on the host, or left to the kernel; without a GPU."""

from __future__ import annotations

import pytest

from tests.measure.cuda.stub import build_stub, run_with_stub
from tests.scheduler.functions.test_cuda_function import needs_stub

CALLS = """
import json, os
import torch
from tilewright.scheduler.best import best
from tilewright.spaces.errors import InputError

copied = 0  # tensors, to the host
to_host = torch.Tensor.cpu

def counted(tensor):
    global copied
    copied += 1
    return to_host(tensor)

torch.Tensor.cpu = counted
torch.Tensor.is_cuda = property(lambda tensor: True)  # the driver's stub takes the host's memory
torch._C._cuda_getCurrentRawStream = lambda device: 64

def aligned(*shape, dtype):
    memory = torch.zeros(1 << 12, dtype=dtype)
    start = -memory.data_ptr() % 64 // dtype.itemsize
    return memory[start : start + torch.Size(shape).numel()].view(shape)

call = best("embedding t=12 d=40 words=7", "cuda:sm_90a", None, check_indices=CHECK)
token, table = aligned(12, dtype=torch.int32), aligned(7, 40, dtype=torch.float32)
out = aligned(12, 40, dtype=torch.float32)
found = []
for entry, capturing, stream in ((6, 0, 64), (7, 0, 64), (6, 1, 64), (6, 1, None)):
    os.environ["STUB_CAPTURING"] = str(capturing)
    token[3] = entry
    try:
        call(token, table, out=out, stream=stream)
        found.append("")
    except InputError as error:
        found.append(str(error))
print(json.dumps({"found": found, "copied": copied}))
"""
IN_A_CAPTURE = (
    "token holds indices, which no capture of a graph can check; "
    "best(check_indices=False) makes a function that does not"
)


def outcome(folder, check: bool | None):
    build_stub(folder)
    script = CALLS.replace("CHECK", str(check))
    found, log = run_with_stub(folder, script, STUB_PARAMETERS="3")
    return found, sum(line.startswith("launch") for line in log)


@needs_stub
@pytest.mark.parametrize("check", [None, False])
def test_nothing_is_copied_to_the_host_and_captures_work(tmp_path, check):
    found, launches = outcome(tmp_path, check)
    assert found == {"found": [""] * 4, "copied": 0}
    assert launches == 4


@needs_stub
def test_indices_are_copied_and_checked_where_that_is_asked_for(tmp_path):
    found, launches = outcome(tmp_path, True)
    beyond = "token holds the index 7; allowed: 0 to 6"
    assert found == {"found": ["", beyond, IN_A_CAPTURE, IN_A_CAPTURE], "copied": 2}
    assert launches == 1
