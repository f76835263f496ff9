"""Occupancy: the blocks that multiprocessors hold at a time, for whole populations of schedules.

Names and units are those of ``spaces.quantities``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.residency import BLOCK_SHARED
from tilewright.spaces.cuda.target import WARP, CudaTarget

USABLE = 0.75
"""The share of L2 that holds on to data while other data streams through."""
ANSWER = 8e-7
"""Seconds until memory answers, roughly."""
ISSUED = 4
"""Instructions that a multiprocessor issues in a cycle, one of each scheduler."""
FULL = 16
"""Warps that fill the issue slots of a multiprocessor, roughly.

Fewer wait for each other's results. Calibrated on random schedules of 17 operators on an H200.
"""
SECTOR, LINE = 32, 128
"""Bytes that L2 transfers at a time, and bytes that L1 serves at a time."""
LINE_SLOTS = ISSUED
"""Issue slots that pass while L1 serves a line: it takes a cycle."""


@dataclass(frozen=True)
class Occupancy:
    """The occupancy of multiprocessors by the ``blocks`` of many schedules.

    A block has ``threads`` threads with ``registers`` registers each and ``shared_bytes`` of shared
    memory; a multiprocessor has ``most_resident`` blocks at most. All fields are numbers or arrays.
    """

    target: CudaTarget
    blocks: Any
    threads: Any
    registers: Any
    shared_bytes: Any
    most_resident: Any = np.inf

    @cached_property
    def resident(self) -> Any:
        """Blocks that a multiprocessor holds at a time; a thread's registers come in eights."""
        target, threads = self.target, self.threads
        by_registers = target.registers_per_multiprocessor // (
            threads * ceil_div(self.registers, 8) * 8
        )
        by_shared = target.shared_per_multiprocessor // (self.shared_bytes + BLOCK_SHARED)
        by_threads = target.threads_per_multiprocessor // threads
        few = np.minimum(np.minimum(by_registers, by_shared), by_threads)
        few = np.minimum(few, target.blocks_per_multiprocessor)
        return np.clip(few, 1, self.most_resident)

    @property
    def slots(self) -> Any:
        """Blocks that the device holds at a time."""
        return self.resident * self.target.multiprocessors

    @cached_property
    def side_by_side(self) -> Any:
        """Blocks that a multiprocessor has at a time on average, at least one.

        There may be fewer blocks than would fit.
        """
        return np.clip(self.blocks / self.target.multiprocessors, 1.0, self.resident)

    @property
    def starved(self) -> Any:
        """Issue slots that pass for each instruction if there are too few warps to fill them."""
        return np.maximum(FULL * WARP / (self.side_by_side * self.threads), 1.0)

    def waits(self, rounds: Any) -> Any:
        """Return the issue slots that pass while every block waits for memory in ``rounds`` rounds.

        A round begins when the one before has come; blocks that are side by side wait together.
        """
        slots = ANSWER * self.target.clock * ISSUED
        return slots * self.blocks * rounds / self.side_by_side

    def quantities(self, chains: Any) -> dict[str, Any]:
        """Return quantities of registers, shared memory and the balance of multiprocessors.

        ``chains`` are independent accumulations of a warp.
        """
        target, resident = self.target, self.resident
        share = self.blocks / target.multiprocessors
        return {
            "registers": self.registers,
            "register_fraction": self.registers / target.registers_per_thread,
            "near_footprint": self.shared_bytes,
            "near_fraction": resident * self.shared_bytes / target.shared_per_multiprocessor,
            "parallelism": np.minimum(self.blocks, self.slots),
            "worker_fraction": np.minimum(share, 1.0),
            "imbalance": np.where(share < 1, 1.0, np.ceil(share) / share),
            "independent_chains": chains * resident * self.threads / WARP,
        }

    def flight(self, bytes: Any) -> dict[str, Any]:
        """Return quantities of L2; each thread of a multiprocessor has ``bytes`` bytes in
        flight."""
        footprint = 1.0 * self.resident * self.threads * bytes
        return {
            "middle_footprint": footprint,
            "middle_fraction": footprint / self.target.l2_bytes,
        }
