"""The best-known kernel of a workload, ready to call."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from costmodel.interfaces import CostModel
from scheduler.cpu_function import CpuFunction
from scheduler.query import query
from spaces.target import Target
from spaces.workload import Workload

if TYPE_CHECKING:
    from measure.database import Database
    from scheduler.cuda_function import CudaFunction


def best(
    workload: Workload | str,
    target: Target | str = "cpu",
    database: Database | str | Path | None = "tuning.db",
    model: CostModel | str | Path | None = None,
) -> CpuFunction | CudaFunction:
    """A function that computes ``workload`` by the best schedule known for ``target``.

    Where the database has none, or is None, the schedule is transferred from the nearest shape
    or predicted, by ``model`` if one is given (:func:`scheduler.query.query`). So there always is
    a function; its ``provenance`` says which. The kernel is built once and kept on disk. Raises
    :class:`spaces.errors.InputError` for bad input, or where no template serves the workload.
    """
    answer = query(workload, target, database, model)
    if answer.target.kind == "cuda":
        from scheduler.cuda_function import CudaFunction

        return CudaFunction(answer.space, answer.schedule, answer.provenance)
    return CpuFunction(answer.space, answer.schedule, answer.provenance)
