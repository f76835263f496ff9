"""What operands are called has nothing to do with what kernels call theirs."""

from __future__ import annotations

import numpy as np
import pytest

from tilewright.measure.cuda.emulator import Emulator, verify
from tilewright.spaces.kernel import WORKSPACE
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

PRODUCT = "y[r, c] = sum[k](a[r, k] * b[k, c]) + workspace[r, c]"
TEXTS = {
    "read": ("y[c] = sum[r](workspace[r, c])", {"r": 4096, "c": 8}),
    "written": ("workspace[c] = sum[r](x[r, c])", {"r": 4096, "c": 8}),
    "fused": (PRODUCT, {"r": 16, "c": 24, "k": 512}),
}


@pytest.mark.parametrize("what", TEXTS)
def test_an_operand_may_be_called_workspace(emulator: Emulator, what: str) -> None:
    """Even where the kernel has one."""
    text, extents = TEXTS[what]
    work = workload(text, **extents)
    space = space_for(work, detect_target("cuda:sm_90a"))
    rows = space.sample(np.random.default_rng(0), 100)
    made = (space.lower(space.schedule(row)) for row in rows)
    kernel = next(kernel for kernel in made if kernel.call.workspace_bytes)
    assert "workspace" in {array.name for array in kernel.call.arrays}
    assert WORKSPACE in {b.name for b in kernel.call.buffers(kernel.call.launches[0])}
    result = verify(emulator, work, kernel)
    assert result.error_text == ""


def test_a_fused_operand_may_be_called_workspace() -> None:
    assert workload(PRODUCT, r=16, c=24, k=512).matmul
    assert (
        workload("matmul", m=8, n=8, k=8, epilogue="x + workspace[m, n]").matmul.epilogue
        is not None
    )
