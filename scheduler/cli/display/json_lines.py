"""One JSON object a line, for programs that watch a tuning run."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, Self

from measure.records.measurement import Measurement
from measure.records.ranking import SEARCH
from scheduler.cli.display.progress import AnyProgress
from scheduler.cli.output import put
from scheduler.tuning.progress import Progress, TuningResult
from scheduler.tuning.yardstick import Yardstick
from spaces.target import Target
from spaces.workloads.workload import Workload


class JsonLines:
    """``event`` is ``start``, ``trial``, ``final`` (a trial of the last comparison) or, at the
    end, ``result``. Each names its ``target``. Times are in seconds."""

    def __init__(self, workload: Workload, target: Target, session: str) -> None:
        self._workload, self._target, self._session = workload, target, session
        self._yardstick = Yardstick(workload)

    def __enter__(self) -> Self:
        print_line(
            event="start",
            workload=self._workload.to_json(),
            target=self._target.to_json(),
            session=self._session,
        )
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def compare_with(self, yardsticks: Sequence[Yardstick]) -> None:
        """See :class:`scheduler.cli.display.choice.Display`."""
        [self._yardstick] = yardsticks

    def progress(self, progress: Progress) -> None:
        """Print one trial; the start of a phase is none."""
        if progress.latest is None:
            return
        print_line(
            **trial(progress, progress.latest, target=self._target.to_json()),
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
            schedule=None if best is None else best.schedule.to_json(),
            best=self._best(None if best is None else best.score),
            stopped=str(result.stopped),
            trials=result.trials,
            resumed=result.resumed,
            lost=result.lost,
            failures=dict(result.failures),
            seconds=result.seconds,
            overhead=result.overhead,
        )

    def _best(self, latency: float | None) -> dict[str, float | None] | None:
        if latency is None:
            return None
        return {
            "latency_s": latency,
            "gflops": self._yardstick.gflops(latency),
            "of_peak": self._yardstick.of_peak(latency),
            "over_numpy": self._yardstick.over_numpy(latency),
        }


def print_line(**fields: Any) -> None:
    """Print one event."""
    put(json.dumps(fields))


def trial(progress: AnyProgress, latest: Measurement, **which: Any) -> dict[str, Any]:
    """What is said of the ``latest`` trial, whatever is tuned; ``which`` follows its event."""
    return {
        "event": "trial" if latest.round == SEARCH else latest.round,
        **which,
        "trials": progress.trials,
        "trials_allowed": progress.trials_allowed,
        "elapsed_s": progress.elapsed,
        "status": str(latest.status),
        "error_kind": None if latest.error_kind is None else str(latest.error_kind),
        "latency_s": latest.score,
    }
