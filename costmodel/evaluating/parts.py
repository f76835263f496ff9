"""The parts of the data that can be held out as a whole, and what each is called."""

from __future__ import annotations

from enum import StrEnum

from tilewright.spaces.target import Target
from tilewright.spaces.workloads.workload import Workload


class Split(StrEnum):
    """The property by which measurements are split: each part has one value of it."""

    WORKLOAD = "workload"
    OPERATOR = "operator"
    DEVICE = "device"


def part_of(workload: Workload, target: Target, split: Split) -> str:
    """Return the part that what was measured of a workload on a target belongs to."""
    if split is Split.DEVICE:
        return device_of(target)
    return workload.key if split is Split.WORKLOAD else workload.operator


def device_of(target: Target) -> str:
    """Return the name of the hardware, whatever compiler and number of threads serve it."""
    return f"{target.kind} {target.to_json().get('model', target.fingerprint)}"
