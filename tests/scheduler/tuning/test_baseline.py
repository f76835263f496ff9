"""What a run is compared with, as far as there is time to measure it."""

from __future__ import annotations

import re
from dataclasses import replace

import pytest

from tilewright.measure.busy import WAITED
from tilewright.measure.estimates import rivals_info, statistic
from tilewright.measure.records.measurement import NUMPY, Measurement, Status
from tilewright.scheduler.cli.display.progress import figures, found
from tilewright.scheduler.tuning import baseline
from tilewright.scheduler.tuning.baseline import Baseline, measure_baseline
from tilewright.spaces.operators import workload
from tilewright.spaces.schedule import Schedule
from tilewright.spaces.target import detect_target

CPU = detect_target("cpu")


@pytest.fixture
def measured(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """Names of what is measured, which takes no time."""
    import tilewright.measure.baseline
    import tilewright.measure.cpu.peak
    from tilewright.measure.cpu.peak import MachinePeaks

    names: list[str] = []
    peaks = MachinePeaks({"float32": 50.0}, {})

    def measure_peaks(target: object) -> MachinePeaks:
        names.append("peaks")
        return peaks

    def numpy_seconds(work: object, threads: int, limit: float) -> float:
        names.append("numpy")
        return 1e-3

    monkeypatch.setattr(tilewright.measure.cpu.peak, "measure_peaks", measure_peaks)
    monkeypatch.setattr(tilewright.measure.cpu.peak, "known_peaks", lambda target: None)
    monkeypatch.setattr(tilewright.measure.baseline, "numpy_seconds", numpy_seconds)
    return names


def test_all_is_measured_where_there_is_time(measured: list[str]) -> None:
    made = measure_baseline(workload("matmul m=64 n=64 k=64"), CPU)
    assert (made.peak_gflops, made.numpy_seconds) == (50.0, 1e-3)
    assert measured == ["peaks", "numpy"]


def test_peaks_that_nobody_measured_yet_take_some_seconds(measured: list[str]) -> None:
    made = measure_baseline(workload("matmul m=64 n=64 k=64"), CPU, baseline.PEAK_SECONDS - 1)
    assert (made.peak_gflops, made.numpy_seconds) == (None, 1e-3)
    assert measured == ["numpy"]


def test_a_product_that_cannot_end_in_time_is_not_begun(measured: list[str]) -> None:
    made = measure_baseline(workload("matmul m=8192 n=8192 k=8192"), CPU, 12)
    assert (made.peak_gflops, made.numpy_seconds) == (50.0, None)
    assert measured == ["peaks"]


def test_a_gpu_is_compared_with_nothing_here(measured: list[str]) -> None:
    work = workload("matmul m=64 n=64 k=64 dtype=float16")
    made = measure_baseline(work, detect_target("cuda:sm_80"))
    assert (made.peak_gflops, made.numpy_seconds) == (None, None)
    assert not measured


def test_a_program_is_held_against_the_peak_where_arithmetic_bounds_it(measured: list[str]) -> None:
    layer = workload("conv2d n=1 c=64 h=14 w=14 o=64 r=3 s=3 padding=1")
    assert measure_baseline(layer, CPU).peak_gflops == 50.0
    assert measure_baseline(workload("softmax r=64 c=64"), CPU).peak_gflops is None


def test_only_what_is_known_is_shown() -> None:
    rows, product = workload("softmax r=64 c=64"), workload("matmul m=64 n=64 k=64")
    assert [name for name, _ in figures(Baseline(rows), 1e-6)] == ["best"]
    known = figures(Baseline(product, peak_gflops=1000.0, numpy_seconds=2e-6), 1e-6)
    assert known == [
        ("best", "1 us, 524.3 GFLOP/s"),
        ("of measured peak", "52.4 %"),
        ("over NumPy's BLAS", "2.00 x"),
    ]


def finalist(clock: str = "cpu", **info: object) -> Measurement:
    """What a comparison says of a kernel of a microsecond, beside NumPy's product of three."""
    samples = tuple(1e-6 + 1e-9 * i for i in range(9))
    rivals = rivals_info({NUMPY: [3 * s for s in samples]}, samples)
    made = Measurement(Schedule("made up", ()), Status.OK, 1.0, samples, clock=clock, round="final")
    made = replace(made, info=rivals | info)
    return replace(made, score=statistic(made)(samples))


def test_what_was_timed_in_turns_counts_and_not_what_was_timed_once() -> None:
    fused = workload("matmul m=64 n=64 k=64 epilogue='relu(x + b[n])'")
    baseline = Baseline(fused, numpy_seconds=45e-6)  # in a bad moment
    shown = dict(found(baseline, finalist()))
    ratio = "3.00 x (3.00 x to 3.00 x), timed in turns, which does the product alone"
    assert shown["over NumPy's BLAS"] == ratio
    assert re.fullmatch(r"1.002 us \([\d.]+ us to [\d.]+ us\), 523.2 GFLOP/s", shown["best"])
    assert "the machine was busy" not in shown
    once = replace(finalist(), info={})
    said = "44.91 x, timed once, before all others, which does the product alone"
    assert dict(found(baseline, once))["over NumPy's BLAS"] == said


def test_a_busy_machine_is_told_of() -> None:
    product = Baseline(workload("matmul m=64 n=64 k=64"), numpy_seconds=45e-6)
    shown = dict(found(product, finalist(**{WAITED: 0.9})))
    assert shown["the machine was busy"] == "processes waited for a processor 90 % of the time"
    assert shown["over NumPy's BLAS"].startswith("3.00 x")
    shown = dict(found(product, finalist("wall", **{WAITED: 0.9})))
    assert shown["over NumPy's BLAS"].startswith("not to be said: several threads")
