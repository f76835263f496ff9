"""Lanes keep tests apart where pytest has several processes (``pytest -n 3``).

Files go to whichever process is free, in their order. Those of a lane go to one process, one after
the other: tests that start clusters or servers, or that kill and time processes, would otherwise
disturb each other; and what others share, such as PyTorch's compilers and the built site, would be
loaded or made in each process.
"""

from __future__ import annotations

from typing import Any

from xdist.scheduler import LoadFileScheduling

LANES = {
    "damaged input": ("tests/fuzz/",),  # before all others, see its conftest.py
    "whole machine": (
        "tests/examples/",
        "tests/measure/cluster/",
        "tests/measure/cpu/",
        "tests/measure/databases/test_hammer.py",
        "tests/measure/databases/test_unavailable.py",
        "tests/scheduler/cli/",
        "tests/scheduler/faults/",
        "tests/test_readme.py",
    ),
    "PyTorch": (
        "tests/experiments/test_training.py",
        "tests/scheduler/dispatch/test_making.py",
        "tests/scheduler/functions/test_cuda_tensors.py",
        "tests/scheduler/torch/",
    ),
    "site": ("tests/docs/test_browser.py", "tests/docs/test_site.py"),
}
OUTSIDE = (
    "tests/measure/cluster/driver/",
    "tests/measure/cluster/test_topology.py",
    "tests/measure/cluster/test_wire.py",
    "tests/scheduler/cli/commands/test_cache.py",
    "tests/scheduler/cli/commands/test_last_resorts.py",
    "tests/scheduler/cli/commands/test_numerics.py",
    "tests/scheduler/cli/commands/test_show.py",
    "tests/scheduler/cli/commands/test_suite.py",
    "tests/scheduler/cli/test_bad_programs.py",
    "tests/scheduler/cli/test_completion.py",
    "tests/scheduler/cli/test_output.py",
    "tests/scheduler/cli/test_settings.py",
    "tests/scheduler/cli/test_table_width.py",
    "tests/scheduler/cli/test_tables.py",
    "tests/scheduler/cli/test_text.py",
    "tests/scheduler/cli/test_workload_arguments.py",
)
"""Places within those of a lane that start no clusters and time no processes: any process may take
their files."""


def lane_of(nodeid: str) -> str | None:
    """Name the lane of a test; None if it has none."""
    if nodeid.startswith(OUTSIDE):
        return None
    return next((lane for lane, places in LANES.items() if nodeid.startswith(places)), None)


class Lanes(LoadFileScheduling):
    """Gives each process the files of a lane, or one file, at a time."""

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        return lane_of(nodeid) or super()._split_scope(nodeid)
