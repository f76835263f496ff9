"""Sources as files of their own: compiled by the command in their comment, called as it says."""

from __future__ import annotations

import ctypes
import os
import re
import shlex
import subprocess
import threading

import numpy as np
import pytest

from tilewright.scheduler.answer import Answer, Provenance
from tilewright.scheduler.functions.source import source_file
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target
from tilewright.spaces.workloads.workload import Workload

EVERY_FUNCTION = (
    'epilogue="relu(x + bias[n]) * s[] + exp(min(x, 1)) + gelu(r[m,n]) + tanh(erf(sigmoid(x)))'
    ' + sqrt(abs(silu(x))) + gelu_tanh(max(x, r[m,n])) + rsqrt(1 + abs(x))"'
)
WORKS = [
    "matmul m=33 n=17 k=9",
    f"matmul m=20 n=37 k=65 a=col c=col {EVERY_FUNCTION}",
    "matmul m=5 n=130 k=40 dtype=bfloat16 out=float32",
    "matmul m=1 n=64 k=100 epilogue=x*2",
]


def said(text: str, pattern: str) -> str:
    found = re.search(pattern, text)
    assert found, text[:2000]
    return found.group(1)


def compiled(text: str, folder) -> ctypes.CDLL:
    (folder / "kernel.c").write_text(text)
    command = shlex.split(said(text, r"// Compile: (.*)"))
    done = subprocess.run(command, cwd=folder, capture_output=True, text=True)
    assert (done.returncode, done.stderr) == (0, "")
    return ctypes.CDLL(str(folder / "kernel.so"))


TASK = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int)
PARALLEL = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_int, TASK, ctypes.c_void_p)


class Runtime(ctypes.Structure):
    _fields_ = (("parallel", PARALLEL), ("pool", ctypes.c_void_p))


@PARALLEL
def parallel(pool, workers, task, context):
    threads = [threading.Thread(target=task, args=(context, w)) for w in range(workers)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def result_of(source: str, work: Workload, inputs: dict[str, np.ndarray], folder) -> np.ndarray:
    """What the kernel computes, compiled and called by nothing but its comment."""
    library = compiled(source, folder)
    result = work.outputs[0].array(np.full(work.outputs[0].shape, np.nan))
    arrays = {**inputs, work.outputs[0].name: result}
    names = re.findall(r"//     buffers\[\d+\]: (\w+),", source)
    buffers = (ctypes.c_void_p * len(names))(*(arrays[name].ctypes.data for name in names))
    size = said(source, r"//     workspace:  (NULL|\d+)").replace("NULL", "0")
    memory = np.zeros(int(size) + 64, np.uint8)
    workspace = -(-memory.ctypes.data // 64) * 64 if int(size) else None
    entry = library[said(source, r"// Call:    (\w+)\(buffers, workspace, runtime\)")]
    entry.restype = None
    threads = "runtime:    NULL" not in source
    runtime = ctypes.byref(Runtime(parallel, None)) if threads else None
    entry(buffers, ctypes.c_void_p(workspace), runtime)
    return result.astype(np.float64)


@pytest.mark.parametrize(("text", "threads"), [*((text, 1) for text in WORKS), (WORKS[1], 2)])
def test_a_cpu_source_does_what_its_comment_says(text, threads, tmp_path):
    if threads > len(os.sched_getaffinity(0)):
        pytest.skip("needs two cores")
    work = workload(text)
    space = space_for(work, detect_target("cpu", threads))
    inputs = work.make_inputs(seed=1)
    for place, row in enumerate(space.sample(np.random.default_rng(3), 2)):
        answer = Answer(space, space.schedule(row), None, Provenance.PREDICTED, 0)
        folder = tmp_path / str(place)
        folder.mkdir()
        result = result_of(source_file(answer), work, inputs, folder)
        np.testing.assert_allclose(result, work.matmul.reference(inputs), rtol=0.02, atol=1e-3)


def test_the_comment_names_threads_and_what_they_need():
    space = space_for(workload(WORKS[0]), detect_target("cpu", threads=1))
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    text = source_file(Answer(space, schedule, None, Provenance.MEASURED, 5))
    assert "//     runtime:    NULL, this kernel is of one thread" in text
    assert "//     C[m, n] = sum[k](A[m, k] * B[k, n])\n" in text
    assert f"// schedule (measured): {schedule}\n" in text
    assert "buffers[2]: C, 33 x 17 float32, 4 bytes each; C[m,n] is element 17 * m + 1 * n" in text


def test_a_formula_has_the_epilogue():
    work = workload('matmul m=2 n=3 k=4 epilogue="relu(x + bias[n])"')
    sums = "C_sum[m, n] = sum[k](A[m, k] * B[k, n])"
    assert work.formula == f"{sums}; C[m, n] = relu(C_sum[m, n] + bias[n])"


@pytest.mark.parametrize("template", ["simt", "mma", "hopper"])
def test_a_cuda_source_compiles_alone(template):
    from tilewright.measure.cuda.compilation import compile_cubin

    work, target = workload("matmul m=256 n=256 k=128 dtype=float16"), detect_target("cuda:sm_90a")
    space = space_for(work, target)
    rows = space.sample(np.random.default_rng(0), 100)
    schedule = next(s for s in map(space.schedule, rows) if s.template == template)
    text = source_file(Answer(space, schedule, None, Provenance.PREDICTED, 0))
    assert said(text, r"// Compile: (.*)") == (
        "nvcc -std=c++17 -fmad=false -arch=sm_90a -cubin kernel.cu -o kernel.cubin"
    )
    entry = said(text, r"// Launch:  (\w+), grid \(\d+, \d+, \d+\), block \(\d+, 1, 1\),")
    assert f"{entry}(" in text
    assert ("CUtensorMap over A: float16" in text) == (template == "hopper")
    assert compile_cubin(text, "sm_90a", 60.0, lambda: False).cubin is not None


def test_the_comment_says_what_each_launch_takes():
    from tilewright.measure.cuda.compilation import compile_cubin

    work, target = workload("rmsnorm_matmul m=64 n=64 k=64 dtype=bfloat16"), "cuda:sm_90a"
    space = space_for(work, detect_target(target))
    schedule = space.schedule(space.sample(np.random.default_rng(0), 1)[0])
    text = source_file(Answer(space, schedule, None, Provenance.PREDICTED, 0))
    entries = re.findall(r"// Launch:  (\w+), grid", text)
    assert len(entries) == len(set(entries)) == 2
    assert all(f"{entry}(" in text for entry in entries)
    pieces = re.findall(r"//     C_left: (\d+) bytes, from byte (\d+) of workspace", text)
    assert len(pieces) == 2
    assert len(set(pieces)) == 1
    assert int(said(text, r"// workspace: (\d+) bytes")) >= sum(map(int, pieces[0]))
    assert "CUtensorMap over C_left: bfloat16" in text
    assert compile_cubin(text, "sm_90a", 60.0, lambda: False).cubin is not None
