"""How a tuning run is shown: a live table to people, lines of JSON to programs."""

from __future__ import annotations

import json
from typing import Any

from rich.live import Live

from scheduler.cli.output import clock, console, facts, percent, seconds, times
from scheduler.progress import Progress, TuningResult
from scheduler.yardstick import Yardstick


class LiveTable:
    """A table that is drawn again at each result, and not in between: drawing takes time from
    the kernels that are being timed."""

    def __init__(self, yardstick: Yardstick) -> None:
        self._yardstick = yardstick
        self._console = console()
        self._live = Live(console=self._console, auto_refresh=False)

    def __enter__(self) -> LiveTable:
        self._live.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._live.stop()

    def progress(self, progress: Progress) -> None:
        """Show where the run stands."""
        best = progress.best.score if progress.best else None
        rows = [
            ("trials", _trials(progress)),
            ("failures", _failures(progress.failures)),
            *_figures(self._yardstick, best),
            ("time", f"{clock(progress.elapsed)}, {_remaining(progress)}"),
        ]
        self._live.update(facts(rows), refresh=True)

    def result(self, result: TuningResult) -> None:
        """Show what was found."""
        self._live.stop()
        if result.best is not None:
            rows = [
                ("workload", str(result.workload)),
                ("schedule", str(result.best.schedule)),
                ("stopped by", str(result.stopped)),
            ]
            self._console.print(facts(rows))


class JsonLines:
    """One JSON object a line: ``event`` is ``trial``, ``final`` or, at the end, ``result``."""

    def __init__(self, yardstick: Yardstick) -> None:
        self._yardstick = yardstick

    def __enter__(self) -> JsonLines:
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def progress(self, progress: Progress) -> None:
        """Print one trial; the start of a phase is none."""
        latest = progress.latest
        if latest is None:
            return
        self._print(
            event="final" if progress.phase == "final" else "trial",
            trials=progress.trials,
            trials_allowed=progress.trials_allowed,
            elapsed_s=progress.elapsed,
            status=str(latest.status),
            error_kind=None if latest.error_kind is None else str(latest.error_kind),
            latency_s=latest.score,
            failures=dict(progress.failures),
            best=self._best(progress.best.score if progress.best else None),
        )

    def result(self, result: TuningResult) -> None:
        """Print what was found."""
        best = result.best
        self._print(
            event="result",
            workload=result.workload.to_json(),
            target=result.target.to_json(),
            schedule=None if best is None else best.schedule.to_json(),
            best=self._best(None if best is None else best.score),
            stopped=str(result.stopped),
            trials=result.trials,
            resumed=result.resumed,
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

    def _print(self, **fields: Any) -> None:
        print(json.dumps(fields), flush=True)


def _figures(yardstick: Yardstick, best: float | None) -> list[tuple[str, str]]:
    if best is None:
        return [("best", "none yet")]
    fused = yardstick.workload.epilogue is not None
    alone = ", which does the product alone" if fused and yardstick.numpy_seconds else ""
    return [
        ("best", f"{seconds(best)}, {yardstick.gflops(best):.1f} GFLOP/s"),
        ("of measured peak", percent(yardstick.of_peak(best))),
        ("over NumPy's BLAS", times(yardstick.over_numpy(best)) + alone),
    ]


def _trials(progress: Progress) -> str:
    known = f", {progress.resumed} known before" if progress.resumed else ""
    return f"{progress.trials} of {progress.trials_allowed}{known}"


def _failures(failures: Any) -> str:
    return ", ".join(f"{count} {kind}" for kind, count in failures.items()) or "none"


def _remaining(progress: Progress) -> str:
    """The time left, by the pace so far, within what is allowed."""
    if progress.phase == "final":
        return "measuring the best again"
    allowed = max(0.0, progress.seconds_allowed - progress.elapsed)
    if not progress.trials:
        return f"at most {clock(allowed)} left"
    pace = progress.elapsed / progress.trials
    return f"about {clock(min(allowed, pace * (progress.trials_allowed - progress.trials)))} left"
