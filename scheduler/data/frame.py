"""Load measurements as a pandas DataFrame."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any

from tilewright.scheduler.data.columns import Kind
from tilewright.scheduler.data.table import Table
from tilewright.scheduler.extras import extra
from tilewright.scheduler.opening import opened
from tilewright.spaces.operators import as_workload
from tilewright.spaces.settings import Default
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
    database: Database | str | Path = Default.DATABASE,
    workload: Workload | Program | str | None = None,
    target: Target | str | None = None,
    features: bool = False,
) -> DataFrame:
    """Load every attempt in ``database`` as a DataFrame, one row each.

    Example::

        table = trials("tuning.db", "softmax r=4096 c=1024")
        print(table.nsmallest(5, "latency_s"))

    ``workload`` and ``target`` select some of them. Each decision has a typed column, called
    ``template.decision``, as has each parameter of the workloads (``workload.m``), and each field
    of a record (``latency_s``, ``status``, ...). All can hold missing values. ``features`` adds the
    features of cost models (``feature.*``), the ``score`` that they learn, and a ``split`` of the
    workloads into train and test. Units and meanings are in ``attrs["columns"]``, by name.

    Raises :class:`InputError` without pandas, or if ``database`` is not a database.
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
