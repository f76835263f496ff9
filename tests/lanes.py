"""Lanes keep tests apart where pytest has several processes (``pytest -n 3``).

Files go to whichever process is free, in their order. Those of a lane go to one process, one after
the other: tests that start clusters or servers, or that kill and time processes, would otherwise
disturb each other.
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
        "tests/measure/databases/test_postgresql.py",
        "tests/measure/databases/test_unavailable.py",
        "tests/scheduler/cli/",
        "tests/scheduler/faults/",
        "tests/test_readme.py",
    ),
}


class Lanes(LoadFileScheduling):
    """Gives each process the files of a lane, or one file, at a time."""

    def __init__(self, config: Any, log: Any = None) -> None:
        config.option.loadscopereorder = False
        super().__init__(config, log)

    def _split_scope(self, nodeid: str) -> str:
        for lane, places in LANES.items():
            if nodeid.startswith(places):
                return lane
        return super()._split_scope(nodeid)
