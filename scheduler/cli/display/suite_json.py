"""One JSON object a line, for programs that watch the tuning of a suite."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Self

from tilewright.scheduler.cli.display.json_lines import print_line, trial
from tilewright.scheduler.suites.progress import SuiteProgress, SuiteResult, TaskState
from tilewright.scheduler.suites.suite import Member, Suite
from tilewright.scheduler.tuning.baseline import Baseline
from tilewright.spaces.target import Target


class SuiteJson:
    """Prints an event for the start, each trial and the result of a suite's run.

    ``event`` is ``start``, ``trial``, ``final`` (a trial of the last comparison) or, at the end,
    ``result``. Each event has the fingerprint of its target as ``target_key``; the start and the
    result also describe the target. ``task`` counts the suite's workloads from 0. Times are in
    seconds.
    """

    def __init__(self, suite: Suite, target: Target, session: str) -> None:
        self._suite, self._target, self._session = suite, target, session

    def __enter__(self) -> Self:
        print_line(
            event="start",
            title=self._suite.title,
            target=self._target.to_json(),
            target_key=self._target.fingerprint,
            session=self._session,
            tasks=[
                {"name": m.name, "workload": m.workload.to_json(), **_weight(m)}
                for m in self._suite.members
            ],
        )
        return self

    def __exit__(self, *error: object) -> None:
        pass

    def compare_with(self, baselines: Sequence[Baseline]) -> None:
        """Print nothing: the result has the comparison."""

    def progress(self, progress: SuiteProgress) -> None:
        """Print one trial; the start of a phase is none."""
        if progress.latest is None:
            return
        which = {"task": progress.place, "target_key": self._target.fingerprint}
        print_line(
            **trial(progress, progress.latest, **which),
            best_s=progress.tasks[progress.place].latency,
            value=progress.value,
        )

    def result(self, result: SuiteResult) -> None:
        """Print what was found."""
        print_line(
            event="result",
            target=self._target.to_json(),
            target_key=self._target.fingerprint,
            objective=str(result.objective),
            value=result.value,
            library_value=result.library_value,
            sections={
                name: {"value": value, "library_value": library}
                for name, (value, library) in result.sections.items()
            },
            stopped=str(result.stopped),
            trials=result.trials,
            resumed=result.resumed,
            lost=result.lost,
            failures=dict(result.failures),
            seconds=result.seconds,
            overhead=result.overhead,
            history=result.history,
            tasks=[_task(task) for task in result.tasks],
        )


def _weight(member: Member) -> dict[str, Any]:
    """Return the weight, and that in each section of a suite that has some."""
    found: dict[str, Any] = {"weight": member.weight}
    return found | ({"sections": dict(member.sections)} if member.sections else {})


def _task(task: TaskState) -> dict[str, Any]:
    best = task.best
    return {
        "name": task.member.name,
        "workload": task.member.workload.to_json(),
        **_weight(task.member),
        "schedule": None if best is None else best.schedule.to_json(),
        "latency_s": task.latency,
        "numpy_s": task.numpy_seconds,
        "gain": task.gain,
        "trials": task.trials,
        "resumed": task.resumed,
        "failures": dict(task.failures),
        "stopped": None if task.stopped is None else str(task.stopped),
    }
