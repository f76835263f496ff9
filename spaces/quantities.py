"""The physical quantities that templates report of a schedule and cost models learn from.

Every template gives every one of these for a whole population at once, so that one model serves
operators, shapes and devices. Bytes are traffic of one call by all workers together; footprints
are of one worker. ``near`` memory is what sits next to the execution units (L1 on a CPU, shared
memory on a GPU), ``middle`` is private or shared L2, ``far`` is the last level on the chip (L3 on
a CPU, L2 on a GPU), ``main`` is DRAM or HBM.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

QUANTITIES = {
    "flops": "operations executed, padding included",
    "useful_flops": "operations the workload asks for",
    "instructions": "issue slots of the main loop: loads, FMAs or MMAs, bookkeeping, a GPU's waits",
    "register_bytes": "bytes that fill registers from near memory: a whole one by a broadcast",
    "near_bytes": "bytes moved from middle into near memory",
    "middle_bytes": "bytes moved from far into middle memory",
    "main_bytes": "bytes moved from and to main memory",
    "packing_bytes": "bytes read and written only to rearrange operands",
    "epilogue_elements": "output elements that pass the epilogue, padding included",
    "registers": "vector registers (CPU) or 32-bit registers a thread (GPU) in use",
    "register_fraction": "registers in use over registers there are",
    "near_footprint": "bytes of near memory in use by one worker",
    "near_fraction": "near footprint over capacity",
    "middle_footprint": "bytes of middle memory in use by one worker",
    "middle_fraction": "middle footprint over capacity",
    "far_fraction": "far footprint over capacity",
    "parallelism": "workers that can run at once: independent pieces of work",
    "worker_fraction": "share of the machine's cores or SMs kept busy, tail wave included",
    "imbalance": "work of the busiest worker over the mean",
    "independent_chains": "independent accumulations in flight on one worker",
    "vector_fraction": "share of lanes that do useful work",
    "intensity": "FMA or MMA instructions per load instruction of the main loop",
    "main_loop_trips": "iterations of the innermost rolled loop, per entry into it",
    "tile_visits": "times an output tile is loaded, updated and stored",
    "synchronisations": "barriers or joins of one call, and what is joined one by one",
}


def widened(columns: Mapping[str, np.ndarray]) -> dict[str, np.ndarray]:
    """Columns of decisions, whole numbers in 64 bits: products of them are large."""
    return {n: v.astype(np.int64) if v.dtype.kind == "i" else v for n, v in columns.items()}


def filled(quantities: Mapping[str, Any], shape: tuple[int, ...]) -> dict[str, np.ndarray]:
    """Make every quantity a float64 array of one shape, whether it was computed for each schedule
    or once for all.
    """
    return {
        name: np.broadcast_to(np.asarray(value, dtype=np.float64), shape)
        for name, value in quantities.items()
    }
