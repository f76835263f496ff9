"""Find inputs of a program that are sensitive: they distinguish right kernels from wrong ones.

The greatest of 4,096 uniform bfloat16 values is the same in both halves of them, so that a kernel
which reads one half would pass. Here mistakes are planted into the program, evaluated on a few rows
and compared with the allowed bounds (:mod:`spaces.derivation.rounding.allowance`). Where the usual
inputs hide the mistakes, values are drawn from another range.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, lru_cache

import numpy as np

from tilewright.measure.drawing.interfaces import Bounds
from tilewright.measure.drawing.product_sensitivity import ENOUGH, SHARE, powers
from tilewright.measure.drawing.sampling import points, sample
from tilewright.measure.drawing.scores import STEEP, USUAL, spread_of_scores
from tilewright.spaces.derivation.algebra import ONE, ZERO, number, times
from tilewright.spaces.derivation.rounding.allowance import allowed
from tilewright.spaces.derivation.rounding.carried import carried_linearly
from tilewright.spaces.derivation.rounding.reached import reached
from tilewright.spaces.derivation.rounding.reads import places_read
from tilewright.spaces.derivation.rounding.rows import Places, Rows, first_steps, row_axes, union
from tilewright.spaces.errors import InputError
from tilewright.spaces.language.cycles import Cycle, cycles
from tilewright.spaces.language.inputs import Spread, draw
from tilewright.spaces.language.program import Operand, Program
from tilewright.spaces.language.ranges import ranges
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Comparison,
    Expression,
    Number,
    Read,
    Select,
)

SAMPLE, LARGE_SAMPLE, ROWS = 1 << 14, 1 << 17, 8
"""Points of the largest stage in a sample of rows; more, where these are fewer rows than so many,
for half of a reduction may not count in a row; and one row at least."""
STEPS = 32
"""Steps of stages that read themselves in a sample of rows: the first ones."""
LARGEST = 1e30
"""The number that stands for an infinity before the first step."""
FEW_ROWS = 2
"""Rows along each axis in which the spread of scores is looked at."""
FEW = 256
"""Elements of all outputs together, below which mistakes hide in many a draw by chance; more are
looked at then, of the usual size."""
SEEDS, SEEDS_OF_FEW = range(20, 22), range(20, 36)

Inputs = Mapping[str, np.ndarray]


@dataclass(frozen=True)
class Sensitivity:
    """The way to draw a program's inputs, the least share of an output's elements that shows each
    of the mistakes which must show, and the operand that sets scores far apart, if there is one.
    """

    spread: Spread
    share: float
    steep: Spread | None = None

    def is_sure(self, program: Program) -> bool:
        """Tell whether every draw shows mistakes, by its sheer size."""
        return self.share * min(output.size for output in program.outputs) >= ENOUGH


@dataclass(frozen=True)
class Mistake:
    """The program and operands of a wrong kernel; ``zeros`` names the output that it fills with
    zeros.
    """

    name: str
    program: Program
    operands: Inputs
    zeros: str = ""


@lru_cache(maxsize=256)
def sensitivity(program: Program) -> Sensitivity:
    """Choose how to draw inputs of ``program``; :class:`InputError` if no inputs show mistakes.

    Zeros in an output, and half of a reduction left out, must show. Finer mistakes need not: a
    mistake in an operand that is multiplied by zero cannot show. But at least one operand must
    affect the output.
    """
    looked_at = Sample.of(program)
    must = sum(1 for _ in looked_at.mistakes())
    best, most = Sensitivity(Spread(), 0.0), (-1, 0.0, 0)
    usual = spread_of_scores(program, USUAL, looked_at.judged)
    for spread in _spreads(program, usual):
        coarse, fine = _shown(looked_at, spread)
        least = min(coarse, default=1.0)
        rank = (sum(share > 0 for share in coarse), min(least, SHARE), sum(fine))
        if rank > most:
            best, most = Sensitivity(spread, least), rank
        if rank[0] == must and all(fine):
            break
    if most[0] < must or (must and program.operands and not most[2]):
        raise InputError(
            f"{_one_line(program)} cannot be verified: whatever its inputs, its outputs do not "
            "show whether all of it is computed"
        )
    if usual is None:
        return best
    far = replace(usual, scale=usual.scale * STEEP / USUAL)
    return replace(best, steep=spread_of_scores(program, STEEP, looked_at.judged, far))


def mistakes_detected(program: Program, inputs: Inputs) -> int:
    """Count the mistakes that must show and do so in a sample of these inputs."""
    whole = Sample(program, _rows(program), {}, inputs)
    return sum(share > 0 for share in whole.coarse())


def mistakes_planted(program: Program) -> int:
    """Count the mistakes that must show."""
    return sum(1 for _ in _coarse(program, reached(program, _rows(program) or Rows())))


def _coarse(program: Program, within: Mapping[str, np.ndarray]) -> Iterator[Mistake]:
    """Yield the mistakes that must show. Halves are halves of the values ``within`` which
    conditions leave each axis, and of entries every second one: whole rows of these would be left
    out else. If conditions leave an axis no value, no mistake shows.
    """
    entries = {own.entry for own in ranges(program).reductions.values()}
    if all(values.size for values in within.values()):
        for output in program.outputs:
            yield Mistake(f"zeros in {output.name}", program, {}, output.name)
    for cycle in cycles(program):
        yield Mistake(f"steps along {cycle.axis} forgotten", _forgetting(program, cycle), {})
    for axis, values in within.items():
        if axis in entries:
            for remainder in (0, 1) if values.size > 1 else ():
                turn = Binary("%", AxisValue(axis), Number(2.0))
                left = Comparison("==", turn, Number(float(remainder)))
                fewer = replace(program, conditions=(*program.conditions, left))
                yield Mistake(f"every second {axis} left out, {remainder} kept", fewer, {})
            continue
        half = values[values.size // 2] if values.size > 1 else 0
        for operator, name in ((">=", "first"), ("<", "second")) if half else ():
            part = Comparison(operator, AxisValue(axis), Number(float(half)))
            yield Mistake(f"{name} half of {axis} left out", _fewer(program, axis, part), {})


def _forgetting(program: Program, cycle: Cycle) -> Program:
    """Return a program whose every step is the first one."""

    def visit(node: Expression) -> Expression:
        if isinstance(node, Read) and node.name in cycle.stages and node.outside is not None:
            return number(float(np.clip(node.outside, -LARGEST, LARGEST)))
        return node.with_children(tuple(map(visit, node.children)))

    stages = (
        replace(stage, body=visit(stage.body)) if stage.name in cycle.stages else stage
        for stage in program.stages
    )
    return replace(program, stages=tuple(stages))


def _fewer(program: Program, axis: str, part: Comparison) -> Program:
    """Return a program without the terms along an axis for which a condition fails. Those of a
    state that is carried are zero, for it is carried in linear time as well then."""
    if carried_linearly(program) is None:
        return replace(program, conditions=(*program.conditions, part))
    counts = Select(part, ONE, ZERO)
    stages = (
        replace(stage, body=times(stage.body, counts)) if axis in stage.over else stage
        for stage in program.stages
    )
    return replace(program, stages=tuple(stages))


def _fine(
    program: Program, operand: Operand, drawn: np.ndarray, places: Places
) -> Iterator[Mistake]:
    """Yield the mistakes that should show in an operand, which is ``drawn`` at some places."""
    for other, name in _others(operand, drawn, places):
        yield Mistake(f"{operand.name} {name}", program, {operand.name: other})


def _others(
    operand: Operand, values: np.ndarray, places: Places
) -> Iterator[tuple[np.ndarray, str]]:
    for ignored in (0, 1):
        if operand.drawn is None or ignored < operand.drawn.below:
            yield np.broadcast_to(np.array(ignored, values.dtype), values.shape), f"as {ignored}"
    for dimension, extent in enumerate(operand.shape):
        if extent > 1:
            shifted = values.take(_before(extent, places.get(dimension)), dimension)
            yield shifted, f"shifted along dimension {dimension}"


def _before(extent: int, places: np.ndarray | None) -> np.ndarray:
    """Return where the place before each one is found, the last one before the first; of
    ``places``, where that is among them."""
    if places is None:
        return np.arange(-1, extent - 1)
    return np.searchsorted(places, (places - 1) % extent).clip(max=places.size - 1)


def _multiplying_states(program: Program) -> list[str]:
    """Return the operands that what a cycle computes is multiplied by."""
    found: dict[str, None] = {}
    for cycle in cycles(program):
        for name in cycle.stages:
            for node in program.stage[name].body.values():
                if isinstance(node, Binary) and node.operator == "*":
                    names = [read.name for read in node.value_reads]
                    if not {*cycle.stages}.isdisjoint(names):
                        found |= dict.fromkeys(n for n in names if n in program.operand)
    return [name for name in found if program.operand[name].drawn is None]


def _shown(looked_at: Sample, spread: Spread) -> tuple[list[float], list[bool]]:
    """Return the share of each mistake that must show, in the least sensitive of the draws in which
    it does; and which operand's finer mistakes show in any."""
    program = looked_at.program
    few = sum(output.size for output in program.outputs) < FEW
    coarse: list[float] = []
    fine = [False] * len(program.operands)
    for seed in SEEDS_OF_FEW if few and (spread.operand or spread.scale == 1) else SEEDS:
        drawn = looked_at.drawn(seed, spread)
        shares = list(drawn.coarse())
        before = coarse or [0.0] * len(shares)
        coarse = [min(a, b) or max(a, b) for a, b in zip(before, shares, strict=True)]
        for place, operand in enumerate(program.operands):
            fine[place] = fine[place] or any(share > 0 for share in drawn.fine(operand))
        if few and all(coarse) and all(fine):
            break
    return coarse, fine


def _rows(program: Program) -> Rows | None:
    """Return the ones at which mistakes are looked for; None for all."""
    steps = (first_steps(program, STEPS) or Rows()).which
    sizes = {axis: values.size for axis, values in steps.items()}
    row = points(program, {**program.extent, **sizes, **dict.fromkeys(row_axes(program), 1)})
    most = max(SAMPLE, min(ROWS * row, LARGE_SAMPLE))
    return first_steps(program, STEPS, sample(program, most, np.random.default_rng(SEEDS[0])))


def _places(program: Program, rows: Rows | None) -> dict[str, Places]:
    """Return where operands are needed for these rows, and for mistakes that read the place
    before."""
    wanted: dict[str, Places] = {}
    for name, places in places_read(program, rows or Rows()).items():
        shape = program.operand[name].shape
        both = {d: union(shape[d], own, (own - 1) % shape[d]) for d, own in places.items()}
        wanted[name] = {d: own for d, own in both.items() if own.size < shape[d]}
    return wanted


@dataclass(frozen=True)
class Sample:
    """Some rows of a program, all if they are None, and its inputs at ``places``."""

    program: Program
    rows: Rows | None
    places: Mapping[str, Places]
    inputs: Inputs

    @staticmethod
    def of(program: Program) -> Sample:
        """Return the rows at which mistakes are looked for, of which no inputs are drawn yet."""
        rows = _rows(program)
        return Sample(program, rows, _places(program, rows), {})

    def drawn(self, seed: int, spread: Spread) -> Sample:
        """Return the sample with inputs of which only what is needed is drawn."""
        return replace(self, inputs=draw(self.program, seed, spread, self.places))

    def judged(self, program: Program, spread: Spread) -> Bounds:
        """Compute the allowed bounds of the one output of another program of the same operands, in
        a few rows.
        """
        few = self.rows and Rows({axis: own[:FEW_ROWS] for axis, own in self.rows.which.items()})
        drawn = self.drawn(SEEDS[0], spread)
        (found,) = allowed(program, drawn.inputs, few, known=self.places).values()
        return found

    def mistakes(self) -> Iterator[Mistake]:
        """Yield the mistakes that must show."""
        return _coarse(self.program, reached(self.program, self.rows or Rows()))

    def coarse(self) -> Iterator[float]:
        """Return the share of each of them."""
        return self._shares(self.mistakes())

    def fine(self, operand: Operand) -> Iterator[float]:
        """Yield the share of elements that shows each mistake which should show in an operand."""
        drawn, places = np.asarray(self.inputs[operand.name]), self.places[operand.name]
        return self._shares(_fine(self.program, operand, drawn, places))

    def _shares(self, mistakes: Iterator[Mistake]) -> Iterator[float]:
        """Yield for each mistake the share of elements that shows it, in the output that shows it
        best.
        """
        right = self._right
        for mistake in mistakes:
            if mistake.zeros:
                low, high = right[mistake.zeros]
                yield _share((np.zeros(low.shape), np.zeros(low.shape)), (low, high))
                continue
            wrong = self._allowed(mistake.program, mistake.operands)
            yield max(_share(wrong[name], right[name]) for name in right)

    @cached_property
    def _right(self) -> dict[str, Bounds]:
        return self._allowed(self.program, {})

    def _allowed(self, program: Program, others: Inputs) -> dict[str, Bounds]:
        return allowed(program, {**self.inputs, **others}, self.rows, known=self.places)


def _share(wrong: Bounds, right: Bounds) -> float:
    """Return how many of the elements are not in both, whatever the rounding."""
    (low, high), (least, greatest) = wrong, right
    apart = (low > greatest) | (high < least) | (np.isnan(low) != np.isnan(least))
    anything = (least == -np.inf) & (greatest == np.inf)
    return float(np.mean(apart & ~anything & ~((low == -np.inf) & (high == np.inf))))


def _spreads(program: Program, usual: Spread | None) -> Iterator[Spread]:
    """Yield spreads from the usual one outwards, as far as the first operand's dtype has room;
    before these, such that a state grows little which operands multiply at each step."""
    if usual is not None:
        yield usual
    multiplying = _multiplying_states(program)
    if multiplying:
        yield Spread()
    for power in (-2, -4, -8):
        yield from (Spread(scale=2.0**power, operand=name) for name in multiplying)
    operand = next((o for o in program.operands if o.drawn is None), None)
    least, most = powers(operand.dtype) if operand else (0, 0)
    for power in (0, 2, -2, 4, -4, 8, -8, 12, 16, -16, 32, -32, 64, -64, 100, -100):
        if least <= power <= most:
            yield Spread(False, 2.0**power)
        if power == 0:
            yield Spread(True)


def _one_line(program: Program) -> str:
    return "; ".join(str(stage) for stage in program.stages)
