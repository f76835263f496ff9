"""Parts of our own space, measured in full."""

from __future__ import annotations

import math

import numpy as np
import pytest

from experiments.search import passes, subspaces
from experiments.search.kernels import Kernels
from experiments.search.passes import PROTOCOL, Passes, timed
from tilewright.measure.cpu.runner import CRunner
from tilewright.scheduler.replay.formats.reading import read_recordings
from tilewright.spaces.registry import space_for
from tilewright.spaces.target import detect_target

SMALL = ("matmul m=16 n=512 k=256", {"block_depth": (64, 80), "prefetch": (1,), "unroll": (2, 3)})


@pytest.fixture
def space(monkeypatch):
    monkeypatch.setitem(subspaces.SUBSPACES, "small", SMALL)
    return subspaces.subspace("small", detect_target("cpu"))


@pytest.fixture
def kernels(space, tmp_path):
    return Kernels(space, tmp_path / "kernels")


@pytest.fixture
def runner(space):
    runner = CRunner(space.target, protocol=PROTOCOL)
    yield runner
    runner.close()


def test_a_subspace_has_the_named_values_alone_and_all_of_what_is_not_named(space):
    whole = space_for(space.workload, space.target)
    tried, every = (
        {d.name: d.values for d in s.templates["thin_stream"].decisions} for s in (space, whole)
    )
    assert {name: tried[name] for name in SMALL[1]} == SMALL[1]
    assert {name for name in tried if tried[name] != every[name]} == set(SMALL[1])


@pytest.mark.parametrize("name", subspaces.SUBSPACES)
def test_those_that_are_recorded_have_at_least_two_thousand(name):
    target = detect_target("cpu")
    if target.isa != "avx512":
        pytest.skip("they were chosen for AVX-512")
    assert 2000 <= subspaces.subspace(name, target).count() <= 4000


def test_each_kernel_is_built_once(kernels):
    count = kernels.space.count()
    assert kernels.build() == count
    assert kernels.build() == 0
    built = kernels.built()
    assert len({each.candidate.schedule for each in built}) == count
    assert all(each.binary.exists() for each in built)


def test_what_is_recorded_can_be_replayed(kernels, tmp_path, monkeypatch):
    monkeypatch.setattr(passes, "LEADERS", 4)
    kernels.build()
    out = tmp_path / "small.jsonl.gz"
    told = subspaces.record(kernels, 0.0, out)
    count = kernels.space.count()
    assert told.startswith(f"{count} of {count} schedules")
    [recording] = read_recordings(out, pytest.fail)
    assert len(recording.outcomes) == count
    assert recording.failures == 0


def test_every_kernel_has_the_samples_of_all_passes_but_the_last(kernels, runner, monkeypatch):
    monkeypatch.setattr(passes, "LEADERS", 4)
    kernels.build()
    built = kernels.built()
    measurements, repeatability = timed(runner, built, 0.0)
    counts = [len(m.samples) for m in measurements]
    assert set(counts) == {PROTOCOL.samples * passes.FULL_PASSES}
    assert -1 <= repeatability.passes <= 1
    assert len(repeatability.again) == 4
    assert repeatability.lost >= 0.0


def test_passes_are_told_apart(kernels, runner):
    kernels.build()
    built = kernels.built()
    known = Passes(runner, built)
    known.over(np.arange(len(built)))
    known.over(np.array([1, 2]))
    both, second = known.scores(slice(None)), known.scores(slice(1, None))
    assert np.isfinite(both).all()
    assert np.flatnonzero(np.isfinite(second)).tolist() == [1, 2]
    assert math.isnan(second[0])
