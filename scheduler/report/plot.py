"""Figures of what a database knows of one workload, for Python and notebooks."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from tilewright.scheduler.opening import opened
from tilewright.scheduler.report.figure import Picture
from tilewright.scheduler.report.figures import FIGURES, check_figure
from tilewright.scheduler.report.jobs import course as course_of
from tilewright.scheduler.report.jobs import pareto as pareto_of
from tilewright.scheduler.report.material import Material, material_of, read_materials
from tilewright.spaces.errors import InputError
from tilewright.spaces.operators import as_workload
from tilewright.spaces.settings import Default
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from tilewright.measure.database import Database
    from tilewright.spaces.language import Program


def figure(
    name: str,
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path = Default.DATABASE,
) -> Picture:
    """Return the figure called ``name``: ``history``, ``seconds``, ``comparison``, ``roofline``,
    ``decisions``, ``parallel``, ``model``, ``predicted``, ``failures``, ``time``, ``quiet`` or
    ``mapping``.

    Example::

        figure("roofline", "matmul m=512 n=512 k=512").save("roofline.svg")

    A notebook shows it. Raises :class:`InputError` for bad input, and for a workload that the
    database has no attempt of.
    """
    check_figure(name, FIGURES)
    return FIGURES[name](_material(workload, target, database))


def history(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path = Default.DATABASE,
) -> Picture:
    """Return the latency of each trial, by who proposed it, and the best so far."""
    return figure("history", workload, target, database)


def roofline(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path = Default.DATABASE,
) -> Picture:
    """Return the speed of each trial below the roofs of the machine."""
    return figure("roofline", workload, target, database)


def decisions(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path = Default.DATABASE,
) -> Picture:
    """Return which decisions separate fast schedules from slow ones."""
    return figure("decisions", workload, target, database)


def parallel(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path = Default.DATABASE,
) -> Picture:
    """Return each trial as a line through its latency and the decisions that matter most."""
    return figure("parallel", workload, target, database)


def mapping(
    workload: Workload | Program | str,
    target: Target | str = Default.TARGET,
    database: Database | str | Path = Default.DATABASE,
) -> Picture:
    """Return how the best kernel divides its work, level by level."""
    return figure("mapping", workload, target, database)


def pareto(database: Database | str | Path = Default.DATABASE) -> Picture:
    """Return the gain of each layer of each job over the seconds that were spent on it."""
    with opened(database, create=False) as known:
        return pareto_of(read_materials(known))


def course(database: Database | str | Path = Default.DATABASE) -> Picture:
    """Return the gain of the latest jobs, each as a whole, over the seconds since it began."""
    with opened(database, create=False) as known:
        return course_of(read_materials(known))


def _material(
    workload: Workload | Program | str, target: Target | str, database: Database | str | Path
) -> Material:
    asked, there = as_workload(workload), as_target(target)
    with opened(database, create=False) as known:
        material = material_of(known, asked, there)
    if not material.records:
        raise InputError(
            f"the database has no trial of {str(asked)[:60]} on {there.summary[:60]}; "
            "tilewright list prints what it has"
        )
    return material
