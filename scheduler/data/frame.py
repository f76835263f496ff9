"""Measurements as a pandas DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.data.columns import Kind
from tilewright.scheduler.data.table import Table
from tilewright.scheduler.extras import extra
from tilewright.scheduler.opening import opened
from tilewright.spaces.operators import as_workload
from tilewright.spaces.target import Target, as_target
from tilewright.spaces.workloads.workload import Workload

if TYPE_CHECKING:
    from pandas import DataFrame

    from tilewright.measure.database import Database
    from tilewright.spaces.language import Program

TYPES = {
    Kind.INTEGER: "Int64",
    Kind.NUMBER: "Float64",
    Kind.TEXT: "string",
    Kind.FLAG: "boolean",
}


def trials(
    database: Database | str | Path = "tuning.db",
    workload: Workload | Program | str | None = None,
    target: Target | str | None = None,
    features: bool = False,
) -> DataFrame:
    """Every attempt of ``database``, of one workload or target or of all, one row each.

    There is a typed column for each decision, called ``template.decision``, for each parameter of
    the workloads (``workload.m``), and for what a record tells (``latency_s``, ``status``, ...);
    all can hold missing values. ``features`` adds what cost models see (``feature.*``), the
    ``score`` that they learn, and a ``split`` of the workloads into train and test. Units and
    meanings are in ``attrs["columns"]``, by name.

    Raises :class:`InputError` without pandas, or for what is no database.
    """
    pandas = extra("pandas", "data", "trials()")
    asked = None if workload is None else as_workload(workload)
    machine = None if target is None else as_target(target)
    with opened(database, create=False) as known:
        table = Table(known, asked, machine, features)
        values: dict[str, list[Any]] = {column.name: [] for column in table.columns}
        for chunk in table.chunks():
            for name, cells in chunk.items():
                values[name] += cells
    frame = pandas.DataFrame(
        {c.name: pandas.array(values[c.name], dtype=TYPES[c.kind]) for c in table.columns}
    )
    frame.attrs["columns"] = {c.name: {"unit": c.unit, "meaning": c.meaning} for c in table.columns}
    return frame
