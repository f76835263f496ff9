"""How rows of chained kernels are computed: powers of two, and extremes that NaN goes by."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping
from pathlib import Path

import numpy as np

from spaces.kernel import Kernel
from spaces.workloads.computation import Computation
from tests.kernels import planted
from tests.spaces.chained_programs import form
from tests.spaces.cpu.chained.test_template import TARGET, computation, kernels, space_of
from tests.spaces.cpu.native import Guarded, check_bugs_are_found, compile_kernels

EXTREMES = "p[i,j] = sum[d](x[i,d] * u[d,j])\nm[i] = max[j](p[i,j])\nn[i] = min[j](p[i,j])\n-> m, n"


def outputs(kernel: Kernel, w: Computation, inputs: Mapping[str, np.ndarray], folder: Path):
    """What a kernel gives for ``inputs``."""
    library = compile_kernels([kernel], TARGET, folder)
    arrays = [np.ascontiguousarray(inputs[a.name]) for a in w.inputs]
    arrays += [np.zeros(a.shape, np.float32) for a in w.outputs]
    pointers = (ctypes.c_void_p * len(arrays))(*(array.ctypes.data for array in arrays))
    memory = Guarded(kernel.call.workspace_bytes, 64)
    runtime = ctypes.addressof(ctypes.c_char.in_dll(library, "test_runtime"))
    entry = getattr(library, kernel.call.entry)
    entry(pointers, ctypes.c_void_p(memory.address), ctypes.c_void_p(runtime))
    return arrays[len(w.inputs) :]


def test_nan_of_one_key_is_the_extreme_of_all_rows(tmp_path):
    """It is in the first vector of a tile that has several; forgotten, it would not show."""
    w = computation(EXTREMES)
    inputs = w.make_inputs(0)
    inputs["u"][:, 2] = np.nan
    wanted = {"keys": 64, "unroll": 1, "scores": "panels"}
    space = space_of(w)
    schedule = next(
        s for s in space.enumerate() if all(s.values[d] == v for d, v in wanted.items())
    )
    right = space.lower(schedule)
    wrong = planted(right, r"nan\d \|= [^;]*;", "", entry="wrong", count=0)
    (tmp_path / "wrong").mkdir()
    assert all(np.isnan(found).all() for found in outputs(right, w, inputs, tmp_path))
    assert not any(np.isnan(o).any() for o in outputs(wrong, w, inputs, tmp_path / "wrong"))


def test_a_power_of_another_base_is_found(tmp_path):
    w = Computation("program", (), form("causal"), "")
    bugs = {"base": (r"tw_exp2\((\w+) \* [^;]*;", r"tw_exp2(\1);")}
    (kernel,) = kernels(w, 1)
    check_bugs_are_found(kernel, bugs, w, TARGET, tmp_path, count=0)


def test_what_reads_no_state_is_no_power_of_two():
    """Its argument may be far from zero and count: there the error would grow."""
    text = "p[i,j] = sum[d](x[i,d] * u[d,j])\ny[i,e] = sum[j](exp(p[i,j]) * v[j,e])"
    (kernel,) = kernels(computation(text), 1)
    assert "tw_exp(" in kernel.source.body
    assert "tw_exp2(" not in kernel.source.body
