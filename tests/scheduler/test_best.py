"""What `best` gives: functions that travel, load what is needed, and run what was measured."""

from __future__ import annotations

import multiprocessing
import os
import pickle
import subprocess
import sys
from copy import copy, deepcopy
from dataclasses import replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from tests.scheduler.functions.cpu_functions import TARGET, arguments, check, function
from tilewright.measure.database import Database
from tilewright.measure.records.measurement import Measurement, Status
from tilewright.measure.records.record import Record
from tilewright.scheduler.best import best
from tilewright.scheduler.functions.cpu_function import CpuFunction
from tilewright.scheduler.functions.cuda_function import CudaFunction
from tilewright.scheduler.functions.kernel_function import RefusedKernelError
from tilewright.scheduler.query import answers
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import workload
from tilewright.spaces.registry import space_for
from tilewright.spaces.space import Space


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
from tilewright.scheduler.best import best
from tilewright.spaces.operators import workload
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
            assert made.workload.outputs[0].shape == (24, 32)
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


def test_a_function_travels_to_a_process_that_is_bound_to_fewer_cores() -> None:
    call = function(m=24, n=32, k=16)
    of_more = replace(TARGET, cores=TARGET.cores + 1)
    made = CpuFunction.remade(call.workload, of_more, call.schedule, call.provenance)
    check(made.workload, made(*arguments(made.workload)))


def test_what_another_machine_differs_in_is_said() -> None:
    call = function(m=24, n=32, k=16)
    other = replace(TARGET, l2_bytes=2 * TARGET.l2_bytes)
    with pytest.raises(InputError, match="of another l2_bytes; best"):
        CpuFunction.remade(call.workload, other, call.schedule, call.provenance)


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


def test_a_prediction_whose_kernel_spills_is_passed_over():
    """Its kernel is one that no run would measure, and there always is a function."""
    text = "rmsnorm r=32768 c=1024 dtype=float32"
    found = list(islice(answers(text, "cuda:sm_90a", None), 16))
    assert len({answer.schedule for answer in found}) == 16
    function = best(text, "cuda:sm_90a", None)
    assert function.schedule in [answer.schedule for answer in found]
    assert function.schedule != found[0].schedule
    with pytest.raises(RefusedKernelError, match="does not build"):
        CudaFunction(found[0].space, found[0].schedule, "predicted")
