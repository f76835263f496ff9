"""How candidates are timed on a GPU: drifting clocks, and long calls."""

from __future__ import annotations

import numpy as np
import pytest

from tests.measure.cuda.emulated_device import EmulatedDevice, pack
from tests.measure.cuda.runs.small_runs import QUICK, WORK, candidate
from tilewright.measure.cuda.session import MeasuringSession, Trial
from tilewright.measure.timing import TimingProtocol

pytestmark = pytest.mark.usefixtures("libraries")


class _Scripted(EmulatedDevice):
    """Whose pulse is slow in some rounds."""

    def __init__(self, slow: set[int]) -> None:
        super().__init__()
        self.slow, self.round = slow, -1

    def seconds(self, call, calls=1, cold=True):
        if "tw_pulse" in call.source:
            self.round += 1
            return 2e-5 if self.round in self.slow else 1e-5
        return super().seconds(call, calls, cold)


@pytest.mark.parametrize(("slow", "rounds"), [(set(), 4), ({2}, 5), (set(range(1, 90)), 8)])
def test_rounds_in_which_the_clock_drifts_are_repeated(tmp_path, slow, rounds):
    path = tmp_path / "good"
    good = candidate("good").kernel
    path.write_bytes(pack(good))
    device = _Scripted(slow)
    trials = [Trial(good.call, path), Trial(good.call, path)]
    started = []
    with MeasuringSession(device, WORK, seed=3, pulse_steps=1) as session:
        for trial in trials:
            session.load(trial)
            session.judge(trial, QUICK, np.inf)
        protocol = TimingProtocol(samples=4)
        pulses = list(session.rounds(trials, protocol, started.append))
    assert device.round + 1 == rounds
    assert len(pulses) == 4
    assert [len(trial.samples) for trial in trials] == [4, 4]
    assert sorted(started) == [0] * rounds + [1] * rounds


@pytest.mark.parametrize(("judged", "least", "most"), [(1e-4, 6, 7), (4e-5, 13, 14), (1e-5, 0, 0)])
def test_long_calls_are_run_for_a_while_before_they_are_timed(tmp_path, judged, least, most):
    path = tmp_path / "good"
    good = candidate("good").kernel
    path.write_bytes(pack(good))
    trials = [Trial(good.call, path), Trial(good.call, path)]
    counts, started = [0, 0], []
    with MeasuringSession(EmulatedDevice(), WORK, seed=3, pulse_steps=1) as session:
        for i, trial in enumerate(trials):
            session.load(trial)
            trial.judged = judged

            def counted(i=i, call=trial.prepared):
                counts[i] += 1
                call()

            counted.source = trial.prepared.source
            counted.runs = 2  # which samples do not call again
            trial.prepared = counted
        list(session.rounds(trials, TimingProtocol(samples=1, heat=1e-3), started.append))
    assert all(least <= count <= most for count in counts)
    assert started[:2] == [0, 1] or not least


@pytest.mark.parametrize(("judged", "before"), [(1e-3, 1), (1e-5, 0)])
def test_a_long_call_is_timed_right_after_another(tmp_path, judged, before):
    """For the clock that it leaves."""
    path, calls = tmp_path / "good", []
    good = candidate("good").kernel
    path.write_bytes(pack(good))
    trial = Trial(good.call, path)
    with MeasuringSession(EmulatedDevice(), WORK, seed=3, pulse_steps=1) as session:
        session.load(trial)

        def counted():
            calls.append(judged)

        counted.source = trial.prepared.source
        counted.runs = 2  # which samples do not call again
        trial.prepared, trial.judged = counted, judged
        pulses = list(session.rounds([trial], TimingProtocol(samples=3), [].append))
    assert len(pulses) == len(trial.samples) == 3
    assert len(calls) >= 3 * before
    assert before or not calls
