"""Some rows of a program at random, as many as the host can evaluate."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from math import lcm, prod

import numpy as np

from tilewright.spaces.derivation.algebra import factors
from tilewright.spaces.derivation.recurrent.view import Recurrence
from tilewright.spaces.derivation.rounding.carried import (
    axes_of_pairs,
    points_of_state,
    stages_of,
)
from tilewright.spaces.derivation.rounding.rows import Rows, row_axes, row_axis
from tilewright.spaces.language.evaluation import largest_array
from tilewright.spaces.language.prefixes import axes_of_points
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.ranges import expected_points, ranges
from tilewright.spaces.language.tree import Binary, Comparison, Number, Read

TERMS = 64
"""Terms of a sum of products that take as long as a point of another stage."""
READS = 4
"""Entries that are read for a sum of products and take as long."""
MOST_RUN = 32
"""Neighbours that are looked at together, at most."""
KEPT = 4
"""Values of each row axis that a sample has, as far as it has room."""


def points(
    program: Program,
    sizes: Mapping[str, int] | None = None,
    carried: Recurrence | None = None,
) -> int:
    """Count the points of the stage that takes longest to evaluate, reduced axes included. For a
    sum of products, which a BLAS computes, count the elements of its largest factor, or a few for
    each term. Axes have ``sizes``, by default their extents. A state that is ``carried`` along all
    positions takes linear time.
    """
    return max(_each(program, sizes or program.extent, carried))


def _each(program: Program, sizes: Mapping[str, int], carried: Recurrence | None) -> Iterator[int]:
    """Yield the points of each stage that is evaluated."""
    for stage in program.stages if carried is None else stages_of(carried):
        if carried is not None and stage.name == carried.name:
            yield points_of_state(carried, sizes)
        else:
            yield _points(program, stage, sizes)


def _points(program: Program, stage: Stage, sizes: Mapping[str, int]) -> int:
    whole = {**sizes, **{axis: program.extent[axis] for axis in stage.over}}
    if (found := ranges(program).of(stage)) is not None:
        others = {*stage.axes, *stage.over} - {found.row, found.entry}
        entries = expected_points(program, found, sizes[found.row])
        return entries * prod(whole[axis] for axis in others)
    every = prod(whole[axis] for axis in axes_of_points(program, stage))
    if largest_array(program, stage, whole) == every:
        return every
    return max(every // TERMS, *_arrays(stage, whole))


def _arrays(stage: Stage, sizes: Mapping[str, int]) -> list[int]:
    """Return the points of a stage and of each factor of its body."""
    found = [prod(sizes[axis] for axis in stage.axes)]
    for factor in factors(stage.body):
        size = prod(sizes[axis] for axis in factor.axes)
        found.append(size // READS if isinstance(factor, Read) else size)
    return found


def sizes_of_rows(
    program: Program,
    most: int,
    axes: Collection[str],
    kept: int = KEPT,
    carried: Recurrence | None = None,
) -> dict[str, int]:
    """Choose sizes of all axes for rows of ``most`` points. The sizes of ``axes`` are halved as
    long as that makes fewer points, at each step where it leaves the least work, down to the size
    ``kept`` of each, or to one.
    """
    sizes, runs = dict(program.extent), runs_of(program)
    for least in (kept, 1):
        fewest = {a: min(sizes[a], max(least, 2 * runs.get(a, 0))) for a in axes}
        while (found := points(program, sizes, carried)) > most:
            halves = {a: max(fewest[a], sizes[a] // 2) for a in axes if sizes[a] > fewest[a]}
            every = {a: list(_each(program, sizes | {a: halves[a]}, carried)) for a in halves}
            fewer = [a for a in halves if max(every[a]) < found]
            if not fewer:
                break
            axis = min(fewer, key=lambda a: (sum(every[a]), a))
            sizes[axis] = max(halves[axis], sizes[axis] * most // found)
    return sizes


def sample(
    program: Program,
    most: int,
    generator: np.random.Generator,
    one_axis: bool = False,
    carried: Recurrence | None = None,
) -> Rows | None:
    """Return the rows of ``most`` points, but one at least; None for all of them. Along the
    :func:`row_axis` alone, if ``one_axis``; at all positions of a state that is ``carried``."""
    axes = [a for a in [row_axis(program)] if a] if one_axis else axes_of_rows(program, carried)
    if not axes or points(program, carried=carried) <= most:
        return None
    sizes = sizes_of_rows(program, most, axes, carried=carried)
    extents, runs = program.extent, runs_of(program)
    which = {
        a: choose_places(extents[a], sizes[a], generator, runs.get(a, 1))
        for a in axes
        if sizes[a] < extents[a]
    }
    return Rows(which) if which else None


def axes_of_rows(program: Program, carried: Recurrence | None) -> list[str]:
    """Return the axes along which some rows can be evaluated alone: not along positions of a state
    that is ``carried``, nor along lanes which share what pairs of these have."""
    shared = () if carried is None else axes_of_pairs(carried)
    return [axis for axis in row_axes(program) if axis not in shared]


def runs_of(program: Program) -> dict[str, int]:
    """Return the neighbours along each axis of which each counts for something else: its remainder
    decides what is added up."""
    found: dict[str, int] = {}
    for stage in program.stages:
        for node in stage.body.walk():
            for side in node.children if isinstance(node, Comparison) else ():
                if isinstance(side, Binary) and side.operator == "%":
                    step = side.right.value if isinstance(side.right, Number) else 1
                    found |= {axis: lcm(found.get(axis, 1), int(step)) for axis in side.axes}
    return {axis: run for axis, run in found.items() if run <= MOST_RUN}


def choose_places(
    extent: int, count: int, generator: np.random.Generator, run: int = 1
) -> np.ndarray:
    """Choose ``count`` places along an axis, in rising order. The first and the last place and
    those beside powers of two, from both ends, come first, because tiles begin and end there; then
    random ones. Half of them are random ``run`` neighbours each, if that is more than one.
    """
    if run > 1:
        starts = generator.integers(0, max(1, extent - run + 1), max(1, count // (2 * run)))
        neighbours = np.unique(starts[:, None] + np.arange(min(run, extent)))
        others = np.setdiff1d(np.arange(extent), neighbours)
        left = min(others.size, max(0, count - neighbours.size))
        chosen = others[choose_places(others.size, left, generator)] if left else others[:0]
        return np.sort(np.concatenate([neighbours, chosen]))
    powers = [2**k for k in range(extent.bit_length())]
    corners = [
        0,
        extent - 1,
        *(p - d for p in powers for d in (1, 0)),
        *(extent - p for p in powers),
    ]
    inside = [row for row in dict.fromkeys(corners) if row < extent]
    first = inside if count >= 2 * len(inside) else inside[: count // 2]
    others = np.delete(np.arange(extent), first)
    chosen = generator.choice(others, count - len(first), replace=False)
    return np.sort(np.concatenate([np.array(first, int), chosen]))
