"""Tables of segments of all kinds, and inputs that have them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from tilewright.spaces.workloads.workload import Workload


def tables(rows: int, count: int) -> Iterator[np.ndarray]:
    """All rows in the first segment, the last or one between; a row each; as even as can be; none
    in the first and last; every second one empty; most in few."""
    each = np.arange(rows) % count
    yield from (np.full(rows, at) for at in sorted({0, count - 1, count // 2}))
    yield np.minimum(np.arange(rows), count - 1)
    yield np.sort(each)
    yield np.sort(np.clip(each, min(1, count - 1), max(count - 2, 0)))
    yield np.sort(each // 2 * 2)
    yield np.sort((np.random.default_rng(0).zipf(1.5, rows) - 1) % count)


def inputs_of(workload: Workload) -> Iterator[dict[str, np.ndarray]]:
    """Random inputs with each table of segments, if there is one."""
    drawn = workload.make_inputs(0)
    table = next((o for o in workload.inputs if o.drawn and o.drawn.sorted), None)
    if table is None:
        yield drawn
        return
    for entries in tables(table.size, table.drawn.below):
        yield drawn | {table.name: entries.astype(np.int32)}
