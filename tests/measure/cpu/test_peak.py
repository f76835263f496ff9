import pytest

from measure.cpu import cache
from measure.cpu.peak import Peaks, measure_peaks
from tests.measure.cpu.c_kernels import target


@pytest.fixture(scope="module")
def peaks(tmp_path_factory):
    patch, folder = pytest.MonkeyPatch(), tmp_path_factory.mktemp("cache")
    patch.setattr(cache.platformdirs, "user_cache_path", lambda name: folder / name)
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
    assert isinstance(peaks, Peaks)
    assert measure_peaks(target()) == peaks
