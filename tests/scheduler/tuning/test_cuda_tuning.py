"""Tuning for a GPU from end to end, the GPU being emulated."""

from __future__ import annotations

from tests.measure.cuda import emulated_device
from tests.measure.cuda.emulated_device import PackingBuilder
from tilewright.measure.cuda.nvrtc import NvrtcBuilder
from tilewright.measure.cuda.runner import CudaRunner
from tilewright.measure.database import Database
from tilewright.measure.executor import LocalExecutor
from tilewright.measure.records.measurement import ErrorKind
from tilewright.measure.timing import TimingProtocol
from tilewright.scheduler.answer import Provenance
from tilewright.scheduler.query import query
from tilewright.scheduler.tuning.tuner import Tuner
from tilewright.spaces.operators import workload
from tilewright.spaces.target import detect_target

TARGET = detect_target("cuda:sm_90a")
OPENER = "tests.measure.cuda.emulated_device:open_device"
WORK = workload("matmul", m=24, n=20, k=16, epilogue="relu(x)")


def test_a_run_verifies_records_and_finds_a_best(tmp_path, monkeypatch):
    monkeypatch.setenv(emulated_device.LIBRARIES, str(tmp_path))
    protocol = TimingProtocol(samples=2, contender_samples=1)
    monkeypatch.setattr("tilewright.measure.cuda.child.STARTING_SECONDS", 280.0)  # it compiles, too
    runner = CudaRunner(TARGET, OPENER, protocol, least_seconds=200)
    builder = PackingBuilder(NvrtcBuilder(TARGET, jobs=2))
    executor = LocalExecutor(TARGET, builder=builder, runner=runner)
    path = tmp_path / "tuning.db"
    try:
        with Database(path) as database:
            result = Tuner(WORK, TARGET, database, executor, seed=1).run(trials=4, seconds=600)
    finally:
        executor.close()
    assert result.trials == 4
    assert set(result.failures) <= {ErrorKind.REJECTED}
    assert result.best is not None
    answer = query(WORK, TARGET, path)
    assert answer.provenance is Provenance.MEASURED
    assert answer.schedule == result.best.schedule
    assert answer.record.measurement.clock == "device"
    assert answer.record.measurement.info["registers"] > 0
