"""Lines for a file or a pipe: the start, each gain, a sign of life, the end."""

from __future__ import annotations

import threading
import time
from typing import Self

from scheduler.cli.output import clock, console, facts, percent, seconds, times
from scheduler.cli.progress import failures_of, outcome, phase_of, trials_of
from scheduler.cli.text import plain
from scheduler.progress import Progress, TuningResult
from scheduler.yardstick import Yardstick
from spaces.target import Target
from spaces.workload import Workload

SILENCE_SECONDS = 30.0  # after which a line says where the run stands
LEAST_GAIN = 1.01  # times as fast as what was last shown; smaller gains wait for the next line


class PlainLines:
    """Few lines: none is rewritten. A thread says where the run stands when all was silent."""

    def __init__(
        self,
        workload: Workload,
        target: Target,
        session: str,
        quiet: bool = False,
        verbose: bool = False,
    ) -> None:
        self._workload, self._target, self._session = workload, target, session
        self._quiet, self._verbose = quiet, verbose
        self._yardstick = Yardstick(workload)
        self._progress: Progress | None = None
        self._shown: float | None = None
        self._phase = ""
        self._begun = self._said = time.monotonic()
        self._lock = threading.Lock()
        self._ended = threading.Event()
        self._watch = threading.Thread(target=self._break_silence, daemon=True)

    def __enter__(self) -> Self:
        self._say(f"tuning {self._workload} on {self._target.summary}; session {self._session}")
        if not self._quiet:
            self._watch.start()
        return self

    def __exit__(self, *error: object) -> None:
        self._ended.set()
        if self._watch.is_alive():
            self._watch.join()

    def compare_with(self, yardstick: Yardstick) -> None:
        """Say what the run is compared with, as far as there is something."""
        self._yardstick = yardstick
        words = []
        if yardstick.peak_gflops is not None:
            words.append(f"peak of this machine: {yardstick.peak_gflops:.1f} GFLOP/s")
        if yardstick.numpy_seconds is not None:
            words.append(f"NumPy's product: {seconds(yardstick.numpy_seconds)}")
        if words:
            self._say("; ".join(words))

    def progress(self, progress: Progress) -> None:
        """Say a gain, and that the best are compared; if verbose, every trial."""
        begins = progress.phase != self._phase
        self._progress, self._phase = progress, progress.phase
        if begins and progress.phase == "final":
            self._say(phase_of(progress))
        elif begins and progress.resumed:
            self._say(f"known from earlier runs: {progress.resumed} schedules")
        elif self._verbose and progress.latest is not None:
            self._say(self._trial(progress))
        elif self._gains(progress):
            self._say(f"trial {progress.trials}: {self._best(progress)}")

    def result(self, result: TuningResult) -> None:
        """Say what was found."""
        self._ended.set()
        if result.best is not None:
            console().print(facts(outcome(result, self._yardstick, self._session)))

    def _gains(self, progress: Progress) -> bool:
        if progress.best is None or progress.best.score is None or progress.phase == "final":
            return False
        return self._shown is None or self._shown > LEAST_GAIN * progress.best.score

    def _best(self, progress: Progress) -> str:
        score = progress.best.score if progress.best else None
        if score is None:
            return "no right kernel yet"
        self._shown = score
        words = [seconds(score), f"{self._yardstick.gflops(score):.1f} GFLOP/s"]
        if (share := self._yardstick.of_peak(score)) is not None:
            words.append(f"{percent(share)} of peak")
        if (ratio := self._yardstick.over_numpy(score)) is not None:
            words.append(f"{times(ratio)} NumPy")
        return ", ".join(words)

    def _trial(self, progress: Progress) -> str:
        latest = progress.latest
        assert latest is not None
        time_taken = seconds(latest.score) if latest.score is not None else latest.error_text
        return f"{progress.phase} {progress.trials}: {latest.status} {time_taken}"

    def _break_silence(self) -> None:
        while not self._ended.wait(max(0.1, self._said + SILENCE_SECONDS - time.monotonic())):
            if time.monotonic() - self._said < SILENCE_SECONDS:
                continue
            progress = self._progress
            where = phase_of(progress)
            if progress is not None:
                where += f"; trials: {trials_of(progress)}, failures: {failures_of(progress)}"
                where += f"; best: {self._best(progress)}"
            try:
                self._say(where)
            except OSError:  # nobody reads any more; the tuner's own lines say so
                return

    def _say(self, text: str) -> None:
        if self._quiet:
            return
        with self._lock:
            self._said = time.monotonic()
            print(f"{clock(self._said - self._begun)}  {plain(text)}", flush=True)
