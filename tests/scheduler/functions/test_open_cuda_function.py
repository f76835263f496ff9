"""Functions of a GPU with any number of rows: what they hand to the driver; without a GPU."""

from __future__ import annotations

import os

import pytest

from tests.measure.cuda.stub import build_stub, run_with_stub
from tests.scheduler.functions.test_cuda_function import needs_stub

CALLS = """
import json, os, sys
sys.path.insert(0, "ROOT")
from tests.scheduler.functions.test_cuda_function import Interface
from tilewright.scheduler.functions.open_function import OpenFunction
from tilewright.scheduler.verification import draw
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

space = space_for(workload("matmul m=96 n=256 k=64 dtype=float16"), detect_target("cuda:sm_90a"))
fits = lambda s: s.template == "mma" and (space.lower(s).call.workspace_bytes > 0) == WORKSPACE
schedule = next(filter(fits, draw(space, 200, 1)))
call = OpenFunction(space, schedule, "m", (0, None), (0,))
b = Interface((64, 256), "<f2", address=1 << 21)

class Rows(Interface):
    def __init__(self, *shape):
        super().__init__(shape, "<f2", address=1 << 20)
        self.shape = shape

def given(rows):
    return Rows(rows, 64), b

def run(rows, stream=64):
    out = Interface((rows, 256), "<f2", address=1 << 30)
    assert call(*given(rows), out=out, stream=stream) is out

for rows in (96, 5, 33, 5, 1):
    run(rows)
run(5, 80)
refused = []
for arrays, out in ((given(0), 0), (given(97), 97), (given(4), 5)):
    try:
        call(*arrays, out=Interface((out, 256), "<f2", address=1 << 30), stream=64)
    except InputError as error:
        refused.append(str(error))
open_kernel = space.lower_open(schedule, "m").call
grids = [open_kernel.at(rows).launches[0].grid for rows in (96, 5, 33, 5, 1, 5)]
print(json.dumps({"refused": refused, "grids": grids}))
"""


@needs_stub
@pytest.mark.parametrize("workspace", [False, True])
def test_grids_and_extents_follow_the_rows_of_calls(tmp_path, workspace):
    build_stub(tmp_path)
    script = CALLS.replace("ROOT", os.getcwd()).replace("WORKSPACE", str(workspace))
    count = str(3 + workspace)
    found, log = run_with_stub(tmp_path, script, STUB_PARAMETERS=count, STUB_EXTENT="1")
    launches = [line.split() for line in log if line.startswith("launch")]
    assert [int(line[-1]) for line in launches] == [96, 5, 33, 5, 1, 5]
    assert [[*map(int, line[2].split(","))] for line in launches] == found["grids"]
    usual = ["0x100000", "0x200000", "0x40000000"]
    assert all(line[-4 - workspace :][:3] == usual for line in launches)
    if workspace:  # one for each stream, whatever the rows
        places = [line[-2] for line in launches]
        assert len(set(places[:5])) == 1
        assert places[5] != places[0]
    shape = "A has the shape"
    assert [text.split(";")[0] for text in found["refused"]] == [
        f"{shape} (0, 64)",
        f"{shape} (97, 64)",
        "C is <f2 of shape (5, 256)",
    ]
