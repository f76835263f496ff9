"""The machine that tests of the CPU's templates make schedules for."""

from __future__ import annotations

import dataclasses

from tilewright.spaces.cpu.target import CpuTarget, detect_cpu

SIZES = {"cores": 2, "l1_bytes": 48 << 10, "l2_bytes": 2 << 20, "l3_bytes": 480 << 20}


def this_cpu() -> CpuTarget:
    """This machine as a target, but with as many cores and with caches as large wherever tests run:
    which schedules keep all rules, and are drawn, depends on them."""
    return dataclasses.replace(detect_cpu(), **SIZES)
