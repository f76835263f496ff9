"""Calls of a GPU's open kernels by a table: whole, and as the last of several; without a GPU."""

from __future__ import annotations

import pytest

pytest.importorskip("torch")

from tests.measure.cuda.stub import build_stub, run_with_stub
from tests.scheduler.functions.test_cuda_function import needs_stub

CALLS = """
import json, numpy as np, torch
from tilewright.scheduler.dispatch.family import family_of
from tilewright.scheduler.dispatch.function import Dispatch
from tilewright.scheduler.dispatch.open_kernels import openable
from tilewright.scheduler.dispatch.profile import as_profile
from tilewright.scheduler.dispatch.table import OpenRange, Row, Table, TableKernel
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import as_target

torch.Tensor.is_cuda = property(lambda tensor: True)  # the driver's stub takes the host's memory
torch._C._cuda_getCurrentRawStream = lambda device: 64
target, profile = as_target("cuda:sm_90a"), as_profile("1-40:1")
family = family_of("matmul n=32 k=COLUMNS dtype=bfloat16", "m", profile)
space = space_for(family.at(16), target)
drawn = map(space.schedule, space.sample(np.random.default_rng(0), 200))
schedule = next(s for s in openable(family, 16, drawn, target)
                if s.template == "mma" and not space.lower(s).call.workspace_bytes)
kernel = TableKernel(16, 1e-6, schedule, (OpenRange(16, schedule),))
call = Dispatch(Table(family, target, profile, (kernel,), (Row(1, 40, 16),), 0.0, 0.0, 1))

def aligned(rows, columns):
    memory = torch.zeros(rows * columns + 64, dtype=torch.bfloat16)
    start = -memory.data_ptr() % 64 // 2
    return memory[start : start + rows * columns].view(rows, columns)

a, b, c = aligned(40, COLUMNS), aligned(COLUMNS, 32), aligned(40, 32)
for rows in (5, 16, 21):
    assert call(a[:rows], b, out=c[:rows]).shape == (rows, 32)
print(json.dumps([a.data_ptr(), c.data_ptr()]))
"""


@needs_stub
def test_the_rows_of_a_call_are_taken_where_they_lie(tmp_path):
    build_stub(tmp_path)
    script = CALLS.replace("COLUMNS", "24")
    (a, c), log = run_with_stub(tmp_path, script, STUB_PARAMETERS="3", STUB_EXTENT="1")
    launches = [line.split() for line in log if line.startswith("launch")]
    extents = [int(line[-1]) for line in launches if line[1].endswith("_open")]
    assert len(launches) == 4  # 5 rows, 16 rows, 16 and 5 of 21
    assert extents == [5, 5]
    *_, left, _, out, _ = launches[-1]
    assert (int(left, 16), int(out, 16)) == (a + 2 * 16 * 24, c + 2 * 16 * 32)
