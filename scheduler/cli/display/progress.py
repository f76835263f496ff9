"""Texts that displays share: where a run stands, how an attempt ended, what was found."""

from __future__ import annotations

from tilewright.measure.busy import why_busy
from tilewright.measure.estimates import latency, over_rival, rival_seconds
from tilewright.measure.records.measurement import NUMPY, Measurement
from tilewright.scheduler.cli.output import clock, estimated, percent, seconds, times
from tilewright.scheduler.cli.text import counted
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.events import Progress, TuningResult
from tilewright.scheduler.tuning.states import States
from tilewright.spaces.registry import note_on
from tilewright.spaces.workloads.spelling import short_text

LIBRARY = "over NumPy's BLAS"


def outcome(result: TuningResult, baseline: Baseline, session: str) -> list[tuple[str, str]]:
    """Return the outcome of a run as pairs of name and value; empty if no kernel was right."""
    best = result.best
    if best is None:
        return []
    note = note_on(best.schedule.template, result.target)
    return [
        ("workload", short_text(result.workload)),
        ("target", result.target.summary),
        ("schedule", str(best.schedule)),
        *([("note", note)] if note else []),
        *found(baseline, best),
        *_over_the_first(result),
        ("trials", f"{result.trials}, failures: {failures_of(result)}"),
        *([("session", session)] if session else []),
        ("stopped by", f"{result.stopped} after {clock(result.seconds)}"),
    ]


def _over_the_first(result: TuningResult) -> list[tuple[str, str]]:
    """Return how many times as fast the best is as the first right kernel of the run, if it had
    one."""
    if result.best is None or result.best.score is None or not result.history:
        return []
    trial, _, latency = result.history[0]
    ratio = times(latency / result.best.score)
    return [("over the first kernel", f"{ratio}, found at trial {trial}")]


def found(baseline: Baseline, best: Measurement) -> list[tuple[str, str]]:
    """Return the latency of what was found, its interval, how it compares with what is known, and
    whether the machine was busy, as names and values."""
    known = dict(figures(baseline, best.score))
    estimate = latency(best)
    if estimate is not None:
        known["best"] = f"{estimated(estimate, seconds)}, {baseline.rate(estimate.value)}"
    if LIBRARY in known:
        known[LIBRARY] = _over_numpy(baseline, best)
    if words := why_busy(best):
        known["the machine was busy"] = words
    return list(known.items())


def figures(baseline: Baseline, best: float | None) -> list[tuple[str, str]]:
    """Return the latency of the best, and how it compares with what is known, as names and
    values."""
    if best is None:
        return [("best", "none yet")]
    known = [("best", f"{seconds(best)}, {baseline.rate(best)}")]
    if (share := baseline.of_peak(best)) is not None:
        known.append(("of measured peak", percent(share)))
    if (ratio := baseline.over_numpy(best)) is not None:
        known.append((LIBRARY, f"{times(ratio)}{_alone(baseline)}"))
    return known


def _over_numpy(baseline: Baseline, best: Measurement) -> str:
    """Return how many times as fast as NumPy, which was timed in turns with the best, or else once,
    before all others."""
    if (ratio := over_rival(best, NUMPY)) is not None:
        return f"{estimated(ratio, times)}, timed in turns{_alone(baseline)}"
    if rival_seconds(best, NUMPY) is not None:
        return "not to be said: several threads wait for one another longer on a busy machine"
    ratio_once = None if best.score is None else baseline.over_numpy(best.score)
    return f"{times(ratio_once)}, timed once, before all others{_alone(baseline)}"


def _alone(baseline: Baseline) -> str:
    return ", which does the product alone" if baseline.workload.words.get("epilogue") else ""


def trials_of(progress: Progress) -> str:
    """Return how many trials are done, of how many."""
    known = f", {progress.resumed} known before" if progress.resumed else ""
    return f"{progress.trials} of {progress.trials_allowed}{known}"


def failures_of(run: States) -> str:
    """Return the failures by kind, and how many attempts the machine lost."""
    counts = {**run.failures, "lost to the machine": run.lost}
    return ", ".join(f"{count} {kind}" for kind, count in counts.items() if count) or "none"


def standing(progress: Progress | None, begun: bool) -> str:
    """Return one line: the run's phase, its trials and its failures. See :func:`phase_of`."""
    where = phase_of(progress, begun)
    if progress is not None:
        where += f"; trials: {trials_of(progress)}, failures: {failures_of(progress)}"
    return where


def attempt_of(progress: Progress, of: str = "") -> str:
    """Return how the latest attempt ended, and of which schedule it was; ``of`` which workload, if
    there are several."""
    latest = progress.latest
    assert latest is not None
    took = f" {seconds(latest.score)}" if latest.score is not None else ""
    why = f": {latest.error_text}" if latest.error_text else ""
    final = progress.phase == "final"
    which = f"final, {progress.pending} to go" if final else f"trial {progress.trials}"
    return f"{which}: {of}{latest.status}{took}  {latest.schedule}{why}"


def phase_of(progress: Progress | None, begun: bool = True) -> str:
    """Return the run's phase in words. Until it has ``begun`` the machine itself is measured."""
    if progress is None:
        return "opening the database" if begun else "measuring the peak of this machine, and NumPy"
    many = counted(progress.pending, "candidate")
    if progress.phase == "final":
        return f"comparing the best again, {many} to go"
    if not progress.pending:
        return "choosing candidates"
    if not progress.trials:
        return f"building the first {many}"
    return f"building and measuring {many}"


def remaining(progress: Progress, elapsed: float) -> str:
    """Return the time left after so many seconds, by the pace so far, within what is allowed."""
    allowed = max(0.0, progress.seconds_allowed - elapsed)
    if progress.phase == "final" or not progress.trials:
        return f"at most {clock(allowed)} left"
    pace = progress.elapsed / progress.trials
    expected = pace * progress.trials_allowed - elapsed
    return f"about {clock(min(allowed, max(0.0, expected)))} left"
