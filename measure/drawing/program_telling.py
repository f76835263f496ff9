"""Whether the inputs of a program tell right kernels from wrong ones.

The greatest of 4,096 uniform bfloat16 values is the same in both halves of them, so that a kernel
which reads one half would pass. Here mistakes are planted into the program, evaluated on a few rows
and held to what is allowed (:mod:`spaces.derivation.rounding.allowance`). Where the usual inputs
hide them, values are drawn from another range.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import lru_cache
from math import prod

import numpy as np

from measure.drawing.product_telling import ENOUGH, SHARE, powers
from spaces.derivation.algebra import factors
from spaces.derivation.rounding.allowance import allowed
from spaces.derivation.rounding.rows import Rows, row_axes, row_axis
from spaces.errors import InputError
from spaces.language.evaluation import largest_array
from spaces.language.inputs import Spread, draw
from spaces.language.program import Operand, Program, Stage
from spaces.language.tree import AxisValue, Comparison, Number, Read

SAMPLE, LARGE_SAMPLE, ROWS = 1 << 14, 1 << 17, 8
"""Points of the largest stage in a sample of rows; more, where these are fewer rows than so many,
for half of a reduction may not count in a row; and one row at least."""
TERMS = 64
"""Terms of a sum of products that take as long as a point of another stage."""
READS = 4
"""Entries that are read for a sum of products and take as long."""
KEPT = 4
"""Values of each row axis that a sample has, as far as it has room."""
FEW = 256
"""Elements of all outputs together, below which mistakes hide in many a draw by chance; more are
looked at then, of the usual size."""
SEEDS, SEEDS_OF_FEW = range(20, 22), range(20, 36)

Inputs = Mapping[str, np.ndarray]
Bounds = tuple[np.ndarray, np.ndarray]


@dataclass(frozen=True)
class Telling:
    """How inputs are drawn, and the least share of an output's elements in which each of the
    mistakes showed that must."""

    spread: Spread
    share: float

    def is_sure(self, program: Program) -> bool:
        """Whether every draw is telling, by its sheer size."""
        return self.share * min(output.size for output in program.outputs) >= ENOUGH


@dataclass(frozen=True)
class Mistake:
    """What a wrong kernel computes, or reads; the output ``zeros``, if that is one's name."""

    name: str
    program: Program
    operands: Inputs
    zeros: str = ""


@lru_cache(maxsize=256)
def telling(program: Program) -> Telling:
    """How to draw inputs of ``program``; :class:`InputError` if none are telling.

    Zeros in an output, and half of a reduction left out, must show. Finer mistakes need not, an
    operand that is multiplied by zero is nobody's to see; but one operand at least must count.
    """
    must = sum(1 for _ in _coarse(program))
    best, most = Telling(Spread(), 0.0), (-1, 0.0, 0)
    for spread in _spreads(program):
        coarse, fine = _shown(program, spread)
        rank = (sum(share > 0 for share in coarse), min(min(coarse), SHARE), sum(fine))
        if rank > most:
            best, most = Telling(spread, min(coarse)), rank
        if rank[0] == must and all(fine):
            break
    if most[0] < must or (program.operands and not most[2]):
        raise InputError(
            f"{_one_line(program)} cannot be verified: whatever its inputs, its outputs do not "
            "show whether all of it is computed"
        )
    return best


def mistakes_shown(program: Program, inputs: Inputs) -> int:
    """How many of the mistakes that must show do so in a sample of these inputs."""
    return sum(share > 0 for share in _shares(program, inputs, _coarse(program)))


def mistakes_planted(program: Program) -> int:
    """How many there are."""
    return sum(1 for _ in _coarse(program))


def points(program: Program, sizes: Mapping[str, int] | None = None) -> int:
    """Of the stage that takes longest to evaluate, those that it reduces over included; of a sum of
    products, which a BLAS adds up, those of its largest factor, or a few for all its terms. Axes
    have ``sizes``, by default their extents."""
    known = sizes or program.extent
    return max(_points(program, stage, known) for stage in program.stages)


def _points(program: Program, stage: Stage, sizes: Mapping[str, int]) -> int:
    whole = {**sizes, **{axis: program.extent[axis] for axis in stage.over}}
    every = prod(whole[axis] for axis in (*stage.axes, *stage.over))
    if largest_array(program, stage, whole) == every:
        return every
    return max(every // TERMS, *_arrays(stage, whole))


def _arrays(stage: Stage, sizes: Mapping[str, int]) -> list[int]:
    """The points of a stage and of each factor of its body."""
    found = [prod(sizes[axis] for axis in stage.axes)]
    for factor in factors(stage.body):
        size = prod(sizes[axis] for axis in factor.axes)
        found.append(size // READS if isinstance(factor, Read) else size)
    return found


def sizes_of_rows(
    program: Program, most: int, axes: Collection[str], kept: int = KEPT
) -> dict[str, int]:
    """Sizes of all axes for rows of ``most`` points: those of ``axes`` are halved as long as that
    makes fewer, where it leaves least to do, down to what is ``kept`` of each, or to one."""
    sizes = dict(program.extent)
    for least in (kept, 1):
        while (found := points(program, sizes)) > most:
            halves = {a: max(least, sizes[a] // 2) for a in axes if sizes[a] > least}
            fewer = [a for a in halves if points(program, sizes | {a: halves[a]}) < found]
            if not fewer:
                break
            axis = min(fewer, key=lambda a: (_all_points(program, sizes | {a: halves[a]}), a))
            sizes[axis] = max(halves[axis], sizes[axis] * most // found)
    return sizes


def _all_points(program: Program, sizes: Mapping[str, int]) -> int:
    return sum(_points(program, stage, sizes) for stage in program.stages)


def sample(
    program: Program, most: int, generator: np.random.Generator, one_axis: bool = False
) -> Rows | None:
    """Rows of ``most`` points, but one at least; None for all of them. Along the
    :func:`row_axis` alone, if ``one_axis``."""
    axes = [a for a in [row_axis(program)] if a] if one_axis else row_axes(program)
    if not axes or points(program) <= most:
        return None
    sizes, extents = sizes_of_rows(program, most, axes), program.extent
    fewer = [axis for axis in axes if sizes[axis] < extents[axis]]
    return Rows({a: _chosen(extents[a], sizes[a], generator) for a in fewer}) if fewer else None


def _chosen(extent: int, count: int, generator: np.random.Generator) -> np.ndarray:
    """Tiles begin and end at the first and last value of an axis, and beside powers of two, from
    both ends: these come first, then random ones."""
    powers = [2**k for k in range(extent.bit_length())]
    corners = [
        0,
        extent - 1,
        *(p - d for p in powers for d in (1, 0)),
        *(extent - p for p in powers),
    ]
    inside = [row for row in dict.fromkeys(corners) if row < extent]
    first = inside if count >= 2 * len(inside) else inside[: count // 2]
    others = np.setdiff1d(np.arange(extent), first)
    chosen = generator.choice(others, count - len(first), replace=False)
    return np.sort(np.concatenate([np.array(first, int), chosen]))


def _coarse(program: Program) -> Iterator[Mistake]:
    """What must show."""
    for output in program.outputs:
        yield Mistake(f"zeros in {output.name}", program, {}, output.name)
    for axis in dict.fromkeys(axis for stage in program.stages for axis in stage.over):
        half = program.extent[axis] // 2
        for operator, name in ((">=", "first"), ("<", "second")) if half else ():
            part = Comparison(operator, AxisValue(axis), Number(float(half)))
            fewer = replace(program, conditions=(*program.conditions, part))
            yield Mistake(f"{name} half of {axis} left out", fewer, {})


def _fine(program: Program, operand: Operand, inputs: Inputs) -> Iterator[Mistake]:
    """What had better show of an operand."""
    for other, name in _others(operand, np.asarray(inputs[operand.name])):
        yield Mistake(f"{operand.name} {name}", program, {operand.name: other})


def _others(operand: Operand, values: np.ndarray) -> Iterator[tuple[np.ndarray, str]]:
    for ignored in (0, 1):
        if operand.drawn is None or ignored < operand.drawn.below:
            yield np.broadcast_to(np.array(ignored, values.dtype), values.shape), f"as {ignored}"
    for dimension, extent in enumerate(operand.shape):
        if extent > 1:
            yield np.roll(values, 1, dimension), f"shifted along dimension {dimension}"


def _shown(program: Program, spread: Spread) -> tuple[list[float], list[bool]]:
    """The share of each mistake that must show, in the least telling of the draws in which it does;
    and which operand's finer mistakes show in any."""
    few = sum(output.size for output in program.outputs) < FEW
    coarse: list[float] = []
    fine = [False] * len(program.operands)
    for seed in SEEDS_OF_FEW if few and spread.scale == 1 else SEEDS:
        inputs = draw(program, seed, spread)
        shares = list(_shares(program, inputs, _coarse(program)))
        before = coarse or [0.0] * len(shares)
        coarse = [min(a, b) or max(a, b) for a, b in zip(before, shares, strict=True)]
        for place, operand in enumerate(program.operands):
            found = _shares(program, inputs, _fine(program, operand, inputs))
            fine[place] = fine[place] or any(share > 0 for share in found)
        if few and all(coarse) and all(fine):
            break
    return coarse, fine


def _shares(program: Program, inputs: Inputs, mistakes: Iterator[Mistake]) -> Iterator[float]:
    """The share of an output's elements in which each mistake shows, of the output that shows it
    best."""
    row = points(program, {**program.extent, **dict.fromkeys(row_axes(program), 1)})
    most = max(SAMPLE, min(ROWS * row, LARGE_SAMPLE))
    rows = sample(program, most, np.random.default_rng(SEEDS[0]))
    right = allowed(program, inputs, rows)
    for mistake in mistakes:
        if mistake.zeros:
            low, high = right[mistake.zeros]
            yield _share((np.zeros(low.shape), np.zeros(low.shape)), (low, high))
            continue
        wrong = allowed(mistake.program, {**inputs, **mistake.operands}, rows)
        yield max(_share(wrong[name], right[name]) for name in right)


def _share(wrong: Bounds, right: Bounds) -> float:
    """How many of the elements are not in both, whatever the rounding."""
    (low, high), (least, greatest) = wrong, right
    apart = (low > greatest) | (high < least) | (np.isnan(low) != np.isnan(least))
    anything = (least == -np.inf) & (greatest == np.inf)
    return float(np.mean(apart & ~anything & ~((low == -np.inf) & (high == np.inf))))


def _spreads(program: Program) -> Iterator[Spread]:
    """From the usual one outwards, as far as the first operand's dtype has room."""
    operand = next((o for o in program.operands if o.drawn is None), None)
    least, most = powers(operand.dtype) if operand else (0, 0)
    for power in (0, 2, -2, 4, -4, 8, -8, 12, 16, -16, 32, -32, 64, -64, 100, -100):
        if least <= power <= most:
            yield Spread(False, 2.0**power)
        if power == 0:
            yield Spread(True)


def _one_line(program: Program) -> str:
    return "; ".join(str(stage) for stage in program.stages)
