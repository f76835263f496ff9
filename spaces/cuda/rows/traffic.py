"""Work and memory traffic of rows schedules, for whole populations at once.

Names and units are those of ``spaces.quantities``; near memory is shared memory, middle memory L2.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tilewright.spaces.cuda.occupancy import LINE, LINE_SLOTS, SECTOR, USABLE, Occupancy
from tilewright.spaces.cuda.rows.sizes import RowSizes
from tilewright.spaces.cuda.scalar_math import CALL_INSTRUCTIONS
from tilewright.spaces.cuda.target import WARP, CudaTarget
from tilewright.spaces.derivation.rows.addresses import RowAddress
from tilewright.spaces.language.tree import Binary, Call, Expression
from tilewright.spaces.quantities import filled, widened
from tilewright.spaces.template import Columns
from tilewright.spaces.workloads.array import Array
from tilewright.spaces.workloads.workload import Workload

SPILLED = 16
"""Multiples of the work that are added for each register file that numbers overflow.

Compilers spill then, and such kernels are not run.
"""
CROWDED = 1.75
"""Register files that a thread's numbers may fill before that, as compilers make some again.

Of 1,027 random kernels NVRTC compiled 92 % without spills up to there, and 43 % beyond twice.
"""
SPARE = 40
"""Registers of a thread beside its numbers."""


def row_quantities(
    workload: Workload, sizes: RowSizes, target: CudaTarget, columns: Columns
) -> dict[str, np.ndarray]:
    """Return every quantity of ``spaces.quantities``, one float64 array each."""
    c = widened(columns)
    padded = 1.0 * sizes.tiles(c) * sizes.tile_rows(c) * sizes.turn(c) * sizes.turns(c)
    threads = sizes.threads(c)
    registers = np.minimum(sizes.registers(c), sizes.register_limit(target, c))
    blocks = sizes.tiles(c) * c["cluster"]
    launched = np.where(c["tile_scheduler"] == "persistent", c["blocks_per_sm"], np.inf)
    occupancy = Occupancy(target, blocks, threads, registers, sizes.shared_bytes(c), launched)
    operations = np.where(c["passes"] == "online", _work(sizes, True), _work(sizes, False))
    lines = _lines(sizes, c, padded)
    warps = sizes.tiles(c) * threads * c["cluster"] / WARP
    alone = 1 + 1 / _groups(sizes, occupancy, c)
    merges = warps * np.log2(sizes.parts(c) + 1) * CALL_INSTRUCTIONS * max(sizes.variables, 1)
    moves = len(sizes.streams) * (1 + _reread(sizes, c)) / c["vector"]
    work = padded * (operations + moves) / WARP + merges
    files = _wanted(sizes, c) / sizes.register_limit(target, c)
    spilled = 1 + SPILLED * np.maximum(files - CROWDED, 0)
    main, near = _main_bytes(workload, sizes, target, c), _near_bytes(workload, sizes, target, c)
    quantities = {
        "flops": padded * operations,
        "useful_flops": float(workload.work),
        "instructions": work * occupancy.starved * alone * spilled
        + LINE_SLOTS * lines
        + occupancy.waits(_rounds(sizes, c)),
        "register_bytes": padded * sizes.element_bytes * (c["row_storage"] == "shared"),
        "near_bytes": near,
        "middle_bytes": near,
        "main_bytes": main,
        "packing_bytes": 0.0,
        "epilogue_elements": padded * _share_written(sizes),
        "far_fraction": min(workload.least_bytes / target.l2_bytes, 1e6),
        "vector_fraction": c["vector"] * sizes.element_bytes / 16,
        "intensity": padded * operations / WARP / np.maximum(lines, 1),
        "main_loop_trips": sizes.steps(c),
        "tile_visits": blocks / occupancy.resident,
        "synchronisations": (c["row_threads"] > WARP) * 1 + (c["cluster"] > 1) * 2,
        **occupancy.quantities(c["thread_rows"]),
        **occupancy.flight(4 * _flight(sizes, c)),
    }
    return filled(quantities, c["vector"].shape)


def _groups(sizes: RowSizes, occupancy: Occupancy, c: Any) -> Any:
    """Return the groups of threads of a multiprocessor that work independently: warps, or rows.

    Threads that share a row which stays on chip wait until all of it has come, and compute while no
    more comes. Of n groups that need memory as long as issue slots, each gets n / (n + 1) of the
    time.
    """
    alone = (c["row_storage"] == "memory") | sizes.rows.is_map
    group = np.where(alone, WARP, np.maximum(c["row_threads"], WARP))
    return occupancy.side_by_side * c["stages"] * sizes.threads(c) / group


def _rounds(sizes: RowSizes, c: Any) -> Any:
    """Return how often a thread waits for the elements of a tile.

    Once if they stay, once for several tiles if they are copied ahead, else at each step of each
    sweep.
    """
    again = sizes.steps(c) * (1 + _reread(sizes, c))
    return np.where(c["row_storage"] == "memory", again, 1 / c["stages"])


def _share_written(sizes: RowSizes) -> float:
    """Return the elements of the largest output for each element of a row.

    Next to none where rows are reduced to a number each.
    """
    every = any(output.place.by_column for output in sizes.rows.outputs)
    return 1.0 if every else 1.0 / sizes.rows.column_count


def _wanted(sizes: RowSizes, c: Any) -> Any:
    """Return the registers that a compiler would like to use.

    It keeps numbers, and what one sweep made of them, for the next sweep, unless they are unpacked
    again or come from shared memory for each sweep.
    """
    shared = c["row_storage"] == "shared"
    stay = sizes.keeps_common(c) & np.logical_not(shared)
    vectors = np.where(stay, sizes.turns(c), sizes.at_once(c))
    numbers = vectors * c["vector"] * c["thread_rows"] * (sizes.real // 4)
    both = numbers * np.where(shared | (c["convert"] == "again"), 1, 2)
    held = sizes.held_words(c) * (c["convert"] == "again")
    return both + held + sizes.common_words(c) + sizes.sum_words(c) + SPARE


def _flight(sizes: RowSizes, c: Any) -> Any:
    return sizes.held_words(c) + sizes.flight_words(c)


def _reread(sizes: RowSizes, c: Any) -> Any:
    """Return how often elements are read again from memory, as the decision where they stay
    says."""
    sweeps = np.where(c["passes"] == "online", len(sizes.online.sweeps), len(sizes.plain.sweeps))
    return np.where(
        c["row_storage"] == "memory", np.maximum(sweeps - 1, 0) * bool(sizes.plain.repeated), 0
    )


def _near_bytes(workload: Workload, sizes: RowSizes, target: CudaTarget, c: Any) -> Any:
    """Return the bytes that come from L2.

    Elements that are read again do so, and those that all rows share for each tile of rows, or once
    for each block that keeps them.
    """
    operand = sizes.rows.program.operand
    repeated = sum(operand[r.name].bytes for r in sizes.plain.repeated)
    places = sizes.rows.places
    shared = sum(operand[r.name].bytes for r in sizes.plain.elements if not places[r].by_row)
    once, tiles = float(workload.least_bytes), sizes.tiles(c) / sizes.chunks(c)
    at_once = np.maximum(target.multiprocessors * c["blocks_per_sm"] // c["cluster"], 1)
    readers = np.where(sizes.keeps_common(c), np.minimum(tiles, at_once), tiles)
    runs = [(array.bytes, _run(place, array, c)) for array, place in sizes.streams]
    wasted = sum(bytes * np.maximum(SECTOR / run - 1, 0) for bytes, run in runs)
    parts = 2 * sizes.partial_bytes(target, c) if sizes.rows.summed else 0
    return once + wasted + repeated * _reread(sizes, c) + shared * (readers - 1) + parts


def _lines(sizes: RowSizes, c: Any, padded: Any) -> Any:
    """Return the lines that L1 serves to all warps; elements read again lie side by side."""
    again = padded * sizes.element_bytes / LINE * _reread(sizes, c)
    sizes_of = [(array.element.bytes, _run(place, array, c)) for array, place in sizes.streams]
    return again + sum(padded * size / np.minimum(run, LINE) for size, run in sizes_of)


def _run(place: RowAddress, array: Array, c: Any) -> Any:
    """Return the contiguous bytes that the lanes of a warp read together."""
    across = c["lanes"] == "rows"
    lanes = np.minimum(np.where(across, c["block_rows"], c["row_threads"]), WARP)
    run: Any = 1
    if place.columns[-1] == 1:
        run = np.where(across, 1, lanes) * c["vector"]
    elif place.rows and place.rows[-1] == 1:
        run = np.where(across, lanes, WARP // lanes)
    return run * array.element.bytes


def _main_bytes(workload: Workload, sizes: RowSizes, target: CudaTarget, c: Any) -> Any:
    """Return the bytes that come from memory.

    Elements that are read again come from L2 as long as the rows in work fit there.
    """
    operand = sizes.rows.program.operand
    repeated = sum(operand[r.name].bytes for r in sizes.plain.repeated)
    least = float(workload.least_bytes)
    blocks = np.minimum(sizes.tiles(c), target.multiprocessors * c["blocks_per_sm"])
    row_bytes = sizes.rows.column_count * sizes.element_bytes
    working = 1.0 * blocks * sizes.tile_rows(c) * row_bytes
    misses = (working > USABLE * target.l2_bytes) & (least > USABLE * target.l2_bytes)
    return least + repeated * _reread(sizes, c) * misses


def _work(sizes: RowSizes, online: bool) -> float:
    """Return the operations for each element; a function counts as several."""
    use = sizes.online if online else sizes.plain
    return float(sum(1 + _operations(e) for sweep in use.sweeps for e in sweep))


def _operations(expression: Expression) -> int:
    own = CALL_INSTRUCTIONS if isinstance(expression, Call) else int(isinstance(expression, Binary))
    return own + sum(map(_operations, expression.children))
