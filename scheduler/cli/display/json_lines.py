"""One JSON object a line, for programs that watch a tuning run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

from tilewright.measure.busy import why_busy
from tilewright.measure.estimates import latency, over_rival, rival_seconds
from tilewright.measure.records.measurement import NUMPY, Measurement
from tilewright.measure.records.ranking import SEARCH
from tilewright.scheduler.cli.display.progress import AnyProgress
from tilewright.scheduler.cli.output import put
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.scheduler.tuning.progress import Progress, TuningResult
from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


class JsonLines:
    """``event`` is ``start``, ``trial``, ``final`` (a trial of the last comparison) or, at the
    end, ``result``. Each names its target by ``target_key``, its fingerprint; the start and the
    result describe it. Times are in seconds."""

    def __init__(self, workload: Workload, target: Target, session: str) -> None:
        self._workload, self._target, self._session = workload, target, session
        self._baseline = Baseline(workload)

    def __enter__(self) -> Self:
        print_line(
            event="start",
            workload=self._workload.to_json(),
            target=self._target.to_json(),
            target_key=self._target.fingerprint,
            session=self._session,
        )
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def compare_with(self, baselines: Sequence[Baseline]) -> None:
        """See :class:`scheduler.cli.display.choice.Display`."""
        [self._baseline] = baselines

    def progress(self, progress: Progress) -> None:
        """Print one trial; the start of a phase is none."""
        if progress.latest is None:
            return
        print_line(
            **trial(progress, progress.latest, target_key=self._target.fingerprint),
            failures=dict(progress.failures),
            best=self._best(progress.best.score if progress.best else None),
        )

    def result(self, result: TuningResult) -> None:
        """Print what was found."""
        best = result.best
        print_line(
            event="result",
            workload=result.workload.to_json(),
            target=result.target.to_json(),
            target_key=result.target.fingerprint,
            schedule=None if best is None else best.schedule.to_json(),
            best=None if best is None else self._found(best),
            leaders=[leader.to_json() for leader in result.leaders],
            stopped=str(result.stopped),
            trials=result.trials,
            resumed=result.resumed,
            lost=result.lost,
            failures=dict(result.failures),
            seconds=result.seconds,
            overhead=result.overhead,
        )

    def _found(self, best: Measurement) -> dict[str, Any]:
        estimate, ratio = latency(best), over_rival(best, NUMPY)
        in_turns = rival_seconds(best, NUMPY)
        told = self._best(best.score) or {}
        if in_turns is not None:
            told["over_numpy"] = None if ratio is None else ratio.value
        return {
            **told,
            "latency_interval_s": None if estimate is None else estimate.ends,
            "over_numpy_interval": None if ratio is None else ratio.ends,
            "numpy_in_turns_s": in_turns,
            "busy": why_busy(best) or None,
        }

    def _best(self, score: float | None) -> dict[str, float | None] | None:
        if score is None:
            return None
        return {
            "latency_s": score,
            "gflops": self._baseline.gflops(score),
            "of_peak": self._baseline.of_peak(score),
            "over_numpy": self._baseline.over_numpy(score),
        }


def print_line(**fields: Any) -> None:
    """Print one event."""
    put(json.dumps(fields))


def trial(progress: AnyProgress, latest: Measurement, **which: Any) -> dict[str, Any]:
    """Return the JSON event of the ``latest`` trial. The items of ``which`` follow its first."""
    return {
        "event": "trial" if latest.round == SEARCH else latest.round,
        **which,
        "trials": progress.trials,
        "trials_allowed": progress.trials_allowed,
        "elapsed_s": progress.elapsed,
        "status": str(latest.status),
        "error_kind": None if latest.error_kind is None else str(latest.error_kind),
        "latency_s": latest.score,
        "schedule": latest.schedule.to_json(),
    }
