"""Kernels as functions: what they compute, what they refuse, what they load."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from copy import copy, deepcopy
from dataclasses import replace
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from measure.database import Database
from measure.records.measurement import Measurement, Status
from measure.records.record import Record
from scheduler.best import best
from scheduler.functions.cpu_function import CpuFunction
from spaces.errors import InputError
from spaces.numerics.allowance import agrees, allowed
from spaces.operators import workload
from spaces.registry import space_for
from spaces.space import Space
from spaces.target import detect_target
from spaces.workloads.workload import Workload

TARGET = detect_target("cpu")
FUSED = {"m": 33, "n": 40, "k": 17, "epilogue": "relu(x + bias[n]) + residual[m,n]"}


@cache
def function(**parameters: Any) -> CpuFunction:
    """The function of some schedule that packs, and so has a workspace."""
    space = space_for(workload("matmul", **parameters), TARGET)
    rows = space.sample(np.random.default_rng(0), 200)
    schedules = [space.schedule(row) for row in rows]
    packing = [s for s in schedules if s.values.get("pack_left") and s.values.get("pack_right")]
    return CpuFunction(space, (packing or schedules)[0], "given")


def arguments(work: Workload, seed: int = 0) -> list[np.ndarray]:
    inputs = work.make_inputs(seed)
    return [inputs[operand.name] for operand in work.inputs]


def check(work: Workload, result: np.ndarray, seed: int = 0) -> None:
    inputs = work.make_inputs(seed)
    assert agrees(result, *allowed(work, work.contract(inputs), inputs)).all()


def test_numpy_arrays_in_and_out() -> None:
    call = function(**FUSED)
    result = call(*arguments(call.workload))
    assert isinstance(result, np.ndarray)
    check(call.workload, result)


def test_torch_tensors_in_and_out() -> None:
    call = function(**FUSED)
    result = call(*map(torch.from_numpy, arguments(call.workload)))
    assert isinstance(result, torch.Tensor)
    check(call.workload, result.numpy())


def test_the_result_goes_where_it_is_wanted() -> None:
    call = function(**FUSED)
    inputs = arguments(call.workload)
    out = np.full(call.workload.output.shape, np.nan, np.float32)
    assert call(*inputs, out=out) is out
    check(call.workload, out)
    tensor = torch.full(call.workload.output.shape, torch.nan)
    assert call(*inputs, out=tensor) is tensor
    check(call.workload, tensor.numpy())


def test_arrays_by_name() -> None:
    call = function(**FUSED)
    a, b, bias, residual = arguments(call.workload)
    check(call.workload, call(residual=residual, B=b, A=a, bias=bias))
    check(call.workload, call(a, b, residual=residual, bias=bias))


@pytest.mark.parametrize(
    ("count", "names"), [(3, []), (5, []), (4, ["bias"]), (3, ["scale"]), (3, ["A"])]
)
def test_a_missing_or_unknown_array_is_refused(count: int, names: list[str]) -> None:
    call = function(**FUSED)
    arrays = [*arguments(call.workload), np.zeros(1, np.float32)]
    with pytest.raises(InputError, match="takes A, B, bias, residual, each once"):
        call(*arrays[:count], **dict.fromkeys(names, arrays[-1]))


@pytest.mark.parametrize("layout", [{"a": "col"}, {"b": "col"}, {"c": "col"}])
def test_column_major_operands_are_fortran_arrays(layout: dict[str, str]) -> None:
    call = function(m=20, n=24, k=12, **layout)
    a, b = arguments(call.workload)
    assert a.flags.f_contiguous is ("a" in layout)
    result = call(a, b)
    assert result.flags.f_contiguous is ("c" in layout)
    check(call.workload, result)
    tensor = call(torch.from_numpy(a), torch.from_numpy(b))
    assert tensor.is_contiguous() is ("c" not in layout)
    check(call.workload, tensor.numpy())


def test_bfloat16_of_both_kinds() -> None:
    call = function(m=16, n=32, k=24, dtype="bfloat16")
    a, b = arguments(call.workload)
    result = call(a, b)
    assert result.dtype == call.workload.output.element.numpy
    check(call.workload, result)
    tensors = [torch.from_numpy(x.view(np.int16)).view(torch.bfloat16) for x in (a, b)]
    tensor = call(*tensors)
    assert tensor.dtype is torch.bfloat16
    assert np.array_equal(tensor.view(torch.int16).numpy(), result.view(np.int16))


def unfit() -> dict[str, tuple[Any, str]]:
    """Values for A, a float32 matrix of 33 x 17, that will not do, and why."""
    good = np.zeros((33, 17), np.float32)
    return {
        "dtype": (good.astype(np.float64), "A is float64 of shape"),
        "byte order": (good.astype(">f4"), "A is >f4 of shape"),
        "shape": (good[:32], r"A is float32 of shape \(32, 17\); allowed: float32"),
        "order": (np.asfortranarray(good), r"A has strides \(4, 132\); allowed: \(68, 4\)"),
        "view": (np.zeros((33, 34), np.float32)[:, ::2], "A has strides"),
        "alignment": (
            np.zeros(33 * 17 * 4 + 1, np.uint8)[1:].view(np.float32).reshape(33, 17),
            "A is not aligned",
        ),
        "list": (good.tolist(), "A is a list; allowed: a NumPy array"),
        "tensor dtype": (torch.zeros(33, 17, dtype=torch.float64), "A is torch.float64"),
        "tensor shape": (torch.zeros(17, 33), r"A is torch.float32 of shape \(17, 33\)"),
        "tensor order": (torch.zeros(17, 33).T, "A has strides"),
        "gradient": (torch.zeros(33, 17, requires_grad=True), "A requires gradients"),
        "device": (torch.zeros(33, 17, device="meta"), "A is on meta; allowed: cpu"),
    }


@pytest.mark.parametrize("what", unfit())
def test_an_unfit_array_is_refused(what: str) -> None:
    call = function(**FUSED)
    array, reason = unfit()[what]
    with pytest.raises(InputError, match=reason):
        call(array, *arguments(call.workload)[1:])


def test_a_parameter_passes_without_gradients() -> None:
    call = function(m=16, n=32, k=24)
    a, b = arguments(call.workload)
    weight = torch.nn.Parameter(torch.from_numpy(b))
    with torch.no_grad():
        check(call.workload, call(torch.from_numpy(a), weight).numpy())
    with pytest.raises(InputError, match="B requires gradients"):
        call(torch.from_numpy(a), weight)


def test_an_unfit_output_is_refused() -> None:
    call = function(**FUSED)
    inputs = arguments(call.workload)
    out = np.zeros((33, 40), np.float32)
    out.flags.writeable = False
    with pytest.raises(InputError, match="C is read-only"):
        call(*inputs, out=out)
    with pytest.raises(InputError, match="out shares memory with residual"):
        call(*inputs, out=inputs[-1])


def test_strides_of_single_elements_do_not_matter() -> None:
    call = function(m=1, n=48, k=32)
    a, b = arguments(call.workload)
    row = np.zeros((5, 32), np.float32)[::3][:1]
    row[:] = a
    assert row.strides != a.strides
    check(call.workload, call(row, b))


def test_threads_may_call_at_once() -> None:
    call = function(m=65, n=70, k=130)

    def repeat(seed: int) -> None:
        inputs, out = arguments(call.workload, seed), np.empty((65, 70), np.float32)
        for _ in range(30):
            out.fill(np.nan)
            check(call.workload, call(*inputs, out=out), seed)

    with ThreadPoolExecutor(4) as threads:
        list(threads.map(repeat, range(8)))


def run_python(text: str, **environment: str) -> str:
    command = [sys.executable, "-c", text]
    done = subprocess.run(
        command, env=os.environ | environment, capture_output=True, text=True, timeout=120
    )
    assert not done.returncode, done.stderr
    return done.stdout


CALL = """
import sys
import numpy as np
from scheduler.best import best
from spaces.operators import workload
call = best(workload("matmul", m=8, n=16, k=8), "cpu", None)
result = call(np.ones((8, 8), np.float32), np.ones((8, 16), np.float32))
assert (result == 8).all()
heavy = ("torch", "xgboost", "sqlalchemy", "alembic", "scipy", "typer", "rich")
print([name for name in heavy if name in sys.modules])
"""


def test_a_second_process_does_not_compile(tmp_path: Path) -> None:
    log = tmp_path / "log"
    compiler = tmp_path / "cc"
    compiler.write_text(f'#!/bin/sh\necho "$@" >> {log}\nexec gcc "$@"\n')
    compiler.chmod(0o755)
    environment = {"CC": str(compiler), "XDG_CACHE_HOME": str(tmp_path)}

    def built() -> int:
        run_python(CALL, **environment)
        return sum("-shared" in line.split() for line in log.read_text().splitlines())

    first = built()
    assert first > 0
    assert built() == first


def test_calling_needs_nothing_of_the_tuner() -> None:
    assert run_python(CALL).strip() == "[]"


def test_what_was_measured_is_what_runs(tmp_path: Path) -> None:
    work = workload("matmul", m=24, n=32, k=16)
    space = space_for(work, TARGET)
    rows = space.sample(np.random.default_rng(1), 2)
    fast, slow = (space.schedule(row) for row in rows)
    with Database(tmp_path / "tuning.db") as database:
        predicted = best(work, TARGET, database)
        assert predicted.provenance == "predicted"
        for schedule, latency in ((slow, 2e-6), (fast, 1e-6)):
            measured = Measurement(schedule, Status.OK, latency, (latency,), started_at=1.0)
            database.record(Record(work, TARGET, space.version_of(schedule), measured))
        call = best(work, TARGET, database)
        assert (call.provenance, call.schedule) == ("measured", fast)
        near = best(workload("matmul", m=24, n=32, k=20), TARGET, database)
        assert near.provenance == "transferred"
        for made in (predicted, call, near):
            assert made.workload.output.shape == (24, 32)
            check(made.workload, made(*arguments(made.workload)))
            assert str(made.schedule) in repr(made)
            assert "void" in made.source


def test_what_was_measured_of_another_spelling_runs_with_the_names_of_ones_own(
    tmp_path: Path,
) -> None:
    spellings = ("relu(x + bias[n]) + residual[m,n]", "r[m,n] + max(0, b[n] + x)")
    one, other = (workload("matmul", m=33, n=40, k=17, epilogue=text) for text in spellings)
    space = space_for(one, TARGET)
    schedule = space.schedule(space.sample(np.random.default_rng(1), 1)[0])
    with Database(tmp_path / "tuning.db") as database:
        measured = Measurement(schedule, Status.OK, 1e-6, (1e-6,), started_at=1.0)
        database.record(Record(one, TARGET, space.version_of(schedule), measured))
        call = best(other, TARGET, database)
    assert (call.provenance, call.schedule, call.workload) == ("measured", schedule, other)
    a, b, residual, bias = arguments(other)
    assert [operand.name for operand in other.inputs] == ["A", "B", "r", "b"]
    check(other, call(a, b, residual, bias))
    check(other, call(A=a, B=b, b=bias, r=residual))
    with pytest.raises(InputError, match="takes A, B, r, b, each once"):
        call(a, b, residual=residual, bias=bias)


def test_a_function_travels_as_its_schedule_and_is_built_where_it_arrives() -> None:
    call = function(m=24, n=32, k=16)
    assert copy(call) is call
    assert deepcopy({"layer": call})["layer"] is call
    packed = pickle.dumps(call)
    assert b"ELF" not in packed
    assert call.source.encode() not in packed
    made = pickle.loads(packed)
    assert (made.schedule, made.provenance) == (call.schedule, call.provenance)
    check(made.workload, made(*arguments(made.workload)))
    with multiprocessing.get_context("spawn").Pool(1) as processes:
        check(call.workload, processes.apply(call, arguments(call.workload)))


def test_a_function_for_another_machine_is_not_remade() -> None:
    call = function(m=24, n=32, k=16)
    other = replace(TARGET, model="another", isa="avx1024")
    parts = (call.workload, other, call.schedule, call.provenance)
    with pytest.raises(InputError, match=r"is for cpu another, .*best\(\) makes one"):
        CpuFunction.remade(*parts)


def test_a_function_of_a_gpu_travels_too() -> None:
    call = best(workload("matmul", m=64, n=64, k=64, dtype="float16"), "cuda:sm_90a", None)
    made = pickle.loads(pickle.dumps(call))
    assert made is not copy(call) is call
    assert (made.source, repr(made)) == (call.source, repr(call))


@pytest.mark.parametrize("target", ["cpu", "cuda:sm_90a"])
def test_the_space_is_made_once(target: str, monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    make = Space.__init__

    def counted(space: Space, *parts: Any) -> None:
        made.append(parts[0])
        make(space, *parts)

    monkeypatch.setattr(Space, "__init__", counted)
    work = workload("matmul", m=64, n=64, k=64, dtype="float16" if "cuda" in target else "float32")
    assert best(work, target, None).workload == work
    assert made == [work]


def test_bad_input_is_refused() -> None:
    with pytest.raises(InputError, match="unknown target"):
        best(workload("matmul", m=4, n=4, k=4), "tpu", None)
