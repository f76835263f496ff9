"""What measuring takes of memory: the estimate against the truth, and what is refused."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from tilewright.measure.cpu.memory import (
    BUFFER_BYTES,
    PROGRAM_BYTES,
    buffer_bytes,
    measuring_bytes,
    needed_bytes,
)
from tilewright.scheduler.limits import check_memory
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

MEASURE = """
import sys
import numpy as np
from tilewright.measure.cpu.builder import CBuilder
from tilewright.measure.cpu.binaries import server_binary
from tilewright.measure.cpu.runner import CRunner
from tilewright.measure.records.measurement import Candidate, Job, Status
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

target, work = detect_target("cpu"), workload(sys.argv[1])
space, job = space_for(work, target), Job("j", work, target)
rows = space.sample(np.random.default_rng(0), 2)
candidates = [Candidate(job, space.schedule(row), space.lower(space.schedule(row))) for row in rows]
builder, runner = CBuilder(target), CRunner(target)
built = builder.build(candidates)
server_binary()  # compiled before, if nobody has: that takes memory of its own
print("begin", flush=True)
assert all(m.status is not Status.ERROR for m in runner.run(job, built))
print(sum(work.outputs[0].bytes + c.kernel.call.workspace_bytes for c in candidates), flush=True)
"""


def family(process: int) -> Iterator[int]:
    """The process and all below it."""
    yield process
    with suppress(OSError):
        for task in Path(f"/proc/{process}/task").iterdir():
            for child in (task / "children").read_text().split():
                yield from family(int(child))


def memory_of(process: int) -> int:
    """Bytes in use by a Python process and all below it, shared pages counted once.

    The Python process starts others, none of them in Python: a child that is still Python has not
    begun its own program, and until then it runs in its parent's memory, which would count twice.
    """
    total, python = 0, Path(sys.executable).resolve()
    for member in family(process):
        with suppress(OSError):
            if member != process and Path(f"/proc/{member}/exe").readlink() == python:
                continue
            for line in Path(f"/proc/{member}/smaps_rollup").read_text().splitlines():
                total += int(line.split()[1]) << 10 if line.startswith("Pss:") else 0
    return total


@pytest.mark.parametrize("shape", ["m=2500 n=3000 k=8", "m=40 n=50 k=200000"])
def test_the_estimate_is_what_is_used(shape: str) -> None:
    """Looking at a process now and then may miss the most it uses, but never sees more."""
    most = 0
    for _ in range(5):
        used, buffers = memory_used(f"matmul {shape}")
        most = max(most, used)
        estimate = measuring_bytes(workload(f"matmul {shape}"), buffers) - PROGRAM_BYTES
        if estimate <= 1.3 * most:
            break
    assert most / 1.3 <= estimate <= 1.3 * most


def memory_used(text: str) -> tuple[int, int]:
    """The most that measuring was seen to take, and what its candidates' buffers do.

    Processes are looked at one after the other: where one ends meanwhile, pages that it shared
    count as another's as well. So what counts is seen twice in a row.
    """
    command = [sys.executable, "-c", MEASURE, text]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "begin\n"
        before = most = last = memory_of(process.pid)
        while process.poll() is None:
            now = memory_of(process.pid)
            most, last = max(most, min(now, last)), now
        buffers = int(process.stdout.readline())
    return most - before, buffers


def test_what_does_not_fit_is_refused_before_anything_starts() -> None:
    work, cpu = workload("matmul m=8192 n=8192 k=8"), detect_target("cpu")
    needed = needed_bytes(work)
    assert 1.5 < needed / 2**30 < 1.7
    check_memory(work, cpu, limit=needed)
    with pytest.raises(InputError, match=r"needs 1.54 GiB of memory .* allowed: 1.54 GiB"):
        check_memory(work, cpu, limit=needed - 1)


def test_a_gpu_keeps_its_arrays_itself() -> None:
    work = workload("matmul m=8192 n=8192 k=8 dtype=float16")
    check_memory(work, detect_target("cuda:sm_80"), limit=1 << 30)


def test_candidates_share_what_is_left() -> None:
    work = workload("matmul m=8192 n=8192 k=8")
    assert buffer_bytes(work, limit=1 << 60) == BUFFER_BYTES
    limit = measuring_bytes(work, 600 << 20)
    assert buffer_bytes(work, limit) == 600 << 20
    assert buffer_bytes(work, limit=1 << 20) == 0
