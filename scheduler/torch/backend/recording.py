"""Keep in the database how fast a whole graph is with kernels, for reports.

Each workload of the graph gets a note, under one session: the times of the whole and of a call of
the region, who computes it and why; and the times and the verdict of each span of dynamic sizes.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import asdict

import torch

from tilewright.measure.database import Database
from tilewright.measure.records.measurement import new_job_id
from tilewright.measure.records.run import note
from tilewright.scheduler.torch.backend.choice import Choice
from tilewright.scheduler.torch.backend.explanation import GraphReport
from tilewright.spaces.target import Target

COMMAND = "torch.compile of a graph"
"""The command of the notes: another one than that of comparisons of single regions."""


def record_graph(
    database: Database,
    target: Target,
    model: str,
    report: GraphReport,
    choices: Sequence[Choice],
) -> None:
    """Keep the times of a graph of the ``model`` with those of its regions that were timed; nothing
    where the whole was not timed."""
    if report.gain is None:
        return
    session = f"graph {new_job_id()}"
    for choice in choices:
        told = choice.report
        if told.gain is None:
            continue
        configuration = {
            "graph": report.kind,
            "model": model,
            "places": told.places,
            "ours_seconds": report.ours_seconds,
            "region_seconds": told.ours_seconds,
            "region_torch_seconds": told.torch_seconds,
            "by": told.by,
            "why": told.why,
            "spans": [asdict(span) for span in report.spans],
        }
        run = note(
            choice.workload,
            target,
            session=session,
            command=COMMAND,
            configuration=configuration,
            versions={"torch": torch.__version__},
            reason="compiled in a graph",
            library_seconds=report.torch_seconds,
        )
        database.begin_run(run)
