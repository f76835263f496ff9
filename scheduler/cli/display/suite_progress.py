"""Texts and tables of a suite that is tuned: title, objective, workloads."""

from __future__ import annotations

from rich.console import RenderableType
from rich.table import Table

from tilewright.scheduler.cli.display.progress import failures_of
from tilewright.scheduler.cli.output import clock, facts, percent, seconds, table, times
from tilewright.scheduler.suites.objective import Objective
from tilewright.scheduler.tuning.events import Started, TuningResult
from tilewright.scheduler.tuning.states import States, TaskState

COLUMNS = ("workload", "#weight", "#trials", "#share", "#latency", "#gain", "#NumPy", "state")


def title_of(started: Started) -> str:
    """Return the suite and its target, in one line."""
    return f"{started.title} ({len(started.members)} workloads) on {started.target.summary}"


def objective_of(states: States) -> str:
    """Return the value of the objective, in words."""
    sections = states.sections
    if sections and states.value is not None:
        return "; ".join(
            f"{name} {_value(states.objective, *values)}" for name, values in sections.items()
        )
    return _value(states.objective, states.value, states.library_value)


def _value(objective: Objective, value: float | None, library: float | None) -> str:
    """Return the value of an objective, in words."""
    if objective is Objective.SPEEDUP:
        return f"geometric mean of speed-ups {times(value)}"
    if value is None:
        return "no right kernel yet of some workloads"
    ratio = "" if library is None else f", {times(library / value)} NumPy"
    return f"weighted sum of latencies {seconds(value)}{ratio}"


def tasks_table(states: States) -> Table:
    """Return the workloads as rows, each with its share of the trials so far."""
    return table(COLUMNS, (_row(task, max(1, states.trials)) for task in states.tasks))


def outcome(result: TuningResult, session: str) -> list[RenderableType]:
    """Return the outcome of a suite's run: a list of facts, then a table of its workloads."""
    pairs = [
        ("target", result.target.summary),
        *_objectives(result),
        ("trials", f"{result.trials}, failures: {failures_of(result)}"),
        *([("session", session)] if session else []),
        ("stopped by", f"{result.stopped} after {clock(result.seconds)}"),
    ]
    return [tasks_table(result), facts(pairs)]


def _objectives(result: TuningResult) -> list[tuple[str, str]]:
    """Return the objective, or that of each section, as facts."""
    sections = result.sections
    if not sections:
        return [("objective", objective_of(result))]
    return [
        (name, _value(result.objective, value, library))
        for name, (value, library) in sections.items()
    ]


def _row(task: TaskState, trials: int) -> list[str]:
    latency = task.latency
    return [
        task.member.label,
        f"{task.member.weight:g}",
        str(task.trials),
        percent(task.trials / trials),
        "-" if latency is None else seconds(latency),
        times(task.gain),
        times(task.over_numpy),
        _doing(task),
    ]


def _doing(task: TaskState) -> str:
    if task.stopped is not None:
        return str(task.stopped)
    return f"{task.pending} pending" if task.pending else "waits"
