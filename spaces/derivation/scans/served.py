"""The workloads that are scans, and reasons why others are none."""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.derivation.scans.view import scan_of
from tilewright.spaces.errors import InputError
from tilewright.spaces.workloads.workload import Workload

cached_scan = lru_cache(maxsize=64)(scan_of)


def why_no_view(workload: Workload) -> str | None:
    """Say why a workload is no scan; return None if it is one."""
    try:
        cached_scan(workload.program)
    except InputError as reason:
        return str(reason)
    return None
