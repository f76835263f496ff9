import pytest

from tests.measure.cpu.c_kernels import target
from tilewright.measure.cpu import peak
from tilewright.measure.cpu.peak import MachinePeaks, known_peaks, measure_peaks


@pytest.fixture(scope="module")
def peaks(tmp_path_factory):
    patch, folder = pytest.MonkeyPatch(), tmp_path_factory.mktemp("cache")
    patch.setenv("XDG_CACHE_HOME", str(folder))
    yield measure_peaks(target())
    patch.undo()


def test_multiply_adds_are_within_what_a_core_can_do(peaks):
    """At least one vector of them in two cycles of 1 GHz, at most three a cycle of 7 GHz."""
    for dtype, size in (("float32", 4), ("float64", 8), ("bfloat16", 2)):
        flops = 2 * target().lanes(size)
        assert flops / 2 < peaks.gflops[dtype] < flops * 21
    assert peaks.fma_gflops == peaks.gflops["float32"]


def test_memory_is_slower_the_farther_it_is(peaks):
    """Only ends are compared: levels in between may be alike, and trials are noisy."""
    assert set(peaks.read_gbs) == {"near", "middle", "far", "main"}
    assert 0.1 < peaks.read_gbs["main"] < peaks.read_gbs["near"]


def test_what_was_measured_is_read_back(peaks):
    assert isinstance(peaks, MachinePeaks)
    assert measure_peaks(target()) == peaks


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"gflops": {}, "read_gbs": {}}', "\x00" * 400])
def test_damaged_peaks_are_unknown_until_they_are_measured_again(peaks, damage, monkeypatch):
    kept = peak._file(target()).path
    whole = kept.read_bytes()
    assert known_peaks(target()) == peaks
    kept.write_text(damage)
    assert known_peaks(target()) is None
    monkeypatch.setattr(peak, "_fma_gflops", lambda *_: 2.0)
    monkeypatch.setattr(peak, "_read_gbs", lambda *_: 3.0)
    again = measure_peaks(target())
    assert again == known_peaks(target())
    assert again.fma_gflops == 2.0
    kept.write_bytes(whole)
