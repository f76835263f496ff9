"""How rows of chained kernels are computed: powers of two, and extremes that NaN goes by."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Mapping

import numpy as np
import pytest

from tests.kernels import planted
from tests.spaces.chained_programs import form
from tests.spaces.cpu.chained.test_template import (
    TARGET,
    complaints,
    computation,
    kernels,
    space_of,
)
from tests.spaces.cpu.native import Guarded, check_bugs_are_found, compile_kernels
from tilewright.spaces.cpu.chained.prelude import decay, prelude
from tilewright.spaces.cpu.compiler import find_compiler
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.workloads.workload import Workload

EXTREMES = "p[i,j] = sum[d](x[i,d] * u[d,j])\nm[i] = max[j](p[i,j])\nn[i] = min[j](p[i,j])\n-> m, n"


def outputs(
    kernel: Kernel,
    library: ctypes.CDLL,
    w: Workload,
    inputs: Mapping[str, np.ndarray],
    dtype: type = np.float32,
):
    """What a kernel gives for ``inputs``."""
    arrays = [np.ascontiguousarray(inputs[a.name]) for a in w.inputs]
    arrays += [np.zeros(a.shape, dtype) for a in w.outputs]
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
    wanted = {"keys": 64, "unroll": 1, "key_layout": "panels"}
    space = space_of(w)
    schedule = next(
        s for s in space.enumerate() if all(s.values[d] == v for d, v in wanted.items())
    )
    right = space.lower(schedule)
    wrong = planted(right, r"nan\d \|= [^;]*;", "", entry="wrong", count=0)
    library = compile_kernels([right, wrong], TARGET, tmp_path)
    assert all(np.isnan(found).all() for found in outputs(right, library, w, inputs))
    assert not any(np.isnan(found).any() for found in outputs(wrong, library, w, inputs))


def test_a_power_of_another_base_is_found(tmp_path):
    w = Workload("program", (), form("causal"), "")
    bugs = {"base": (r"tw_decay\((\w+)\)", r"tw_exp2(\1)")}
    (kernel,) = kernels(w, 1)
    check_bugs_are_found(kernel, bugs, w, TARGET, tmp_path, count=0)


def test_what_reads_no_state_is_no_power_of_two():
    """Its argument may be far from zero and count: there the error would grow."""
    text = "p[i,j] = sum[d](x[i,d] * u[d,j])\ny[i,e] = sum[j](exp(p[i,j]) * v[j,e])"
    (kernel,) = kernels(computation(text), 1)
    assert "tw_exp(" in kernel.source.body
    assert "tw_exp2(" not in kernel.source.body


def test_a_distance_from_a_minimum_is_no_decay(tmp_path):
    """It grows: the power may be beyond what floats hold, and NaN goes by a minimum, too."""
    text = "p[i,j] = sum[d](x[i,d] * u[d,j])\nm[i] = min[j](p[i,j])\n"
    text += "y[i,e] = sum[j](exp(p[i,j] - m[i]) * v[j,e])"
    w = computation(text)
    (kernel,) = kernels(w, 1)
    assert "tw_decay(" not in kernel.source.body
    assert "tw_exp2(" in kernel.source.body
    assert not complaints(w, [kernel], tmp_path)


@pytest.mark.parametrize("isa", sorted({"", TARGET.isa}))
def test_decay_of_all_distances(isa, tmp_path):
    """By the machine's instructions and without them."""
    source = prelude(frozenset(), TARGET).replace(decay(TARGET.isa), decay(isa))
    source += "void all(float *x, long n) { for (long i = 0; i < n; i += TW_LANES) "
    source += "tw_store_float32(x + i, tw_decay(tw_load_float32(x + i))); }\n"
    (tmp_path / "decay.c").write_text(source)
    command = [find_compiler().path, *TARGET.compiler_flags, "-shared", "-fPIC", "-w", "decay.c"]
    subprocess.run([*command, "-o", "decay.so"], check=True, cwd=tmp_path)
    x = -np.geomspace(1e-8, 1e30, 1 << 16, dtype=np.float32)
    x[:3] = 0, -np.inf, np.nan
    found, exact = x.copy(), np.exp(x.astype(np.float64))
    library = ctypes.CDLL(str(tmp_path / "decay.so"))
    library.all(found.ctypes.data_as(ctypes.c_void_p), ctypes.c_long(x.size))
    assert found[0] == 1
    assert found[1] == 0
    assert np.isnan(found[2])
    allowed = (2e-7 + 8e-8 * np.minimum(-x[3:], 100)) * exact[3:] + 2e-38
    assert (np.abs(found[3:] - exact[3:]) <= allowed).all()
