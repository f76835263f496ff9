"""Scores: what exponentials that a sum adds up are of, and which operand sets them apart.

Of scores that are all about equal a softmax is nearly uniform: its shift by the maximum cancels
out, and most of the corrections between tiles do. So an operand that scores follow is drawn so
large that their standard deviation is :data:`USUAL`; and once :data:`STEEP`, where exponentials
that are not shifted overflow.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from math import isfinite, log, nan

import numpy as np

from tilewright.measure.drawing.interfaces import Bounds
from tilewright.measure.drawing.product_sensitivity import powers
from tilewright.spaces.derivation.inlining import inlined
from tilewright.spaces.derivation.rounding.rows import reads
from tilewright.spaces.language.inputs import Spread
from tilewright.spaces.language.program import Operand, Output, Program, Stage
from tilewright.spaces.language.tree import Call, Expression

USUAL, STEEP = 3.0, 60.0
"""Standard deviations of a row's scores."""
NEAR = 1.3
"""Times that a standard deviation may be off from one of these."""
STEPS = 6
"""Scales of an operand that are tried."""
SCORES = "tw.scores"
ANY = Spread()

Judge = Callable[[Program, Spread], Bounds]
"""Bounds the one output of a program for inputs of a spread."""


@dataclass(frozen=True)
class Scores:
    """A ``program`` whose output :data:`SCORES` has them, along its last axes, of which there are
    ``over``."""

    program: Program
    over: int

    @property
    def operands(self) -> set[str]:
        """The operands that they are computed from."""
        found = {SCORES}
        for stage in reversed(self.program.stages):
            if stage.name in found:
                found |= {read.name for read in reads(self.program, stage)}
        return found & self.program.operand.keys()

    def deviation(self, judge: Judge, spread: Spread) -> float:
        """Return the standard deviation of the scores of a row, in the median of all rows."""
        low, high = judge(self.program, spread)
        middle = np.asarray(low, np.float64) / 2 + np.asarray(high, np.float64) / 2
        rows = middle.reshape((*middle.shape[: middle.ndim - self.over], -1))
        with np.errstate(all="ignore"):
            found = rows.std(axis=-1)
        known = found[np.isfinite(found)]
        return float(np.median(known)) if known.size else nan


def scores_of(program: Program) -> Scores | None:
    """Return the first ones of a program; None if it has none."""
    for number, stage in enumerate(program.stages):
        for call in _exponentials(program, stage):
            axes = (*stage.axes, *stage.over)
            shape = program.shape(axes)
            (body,) = call.children
            own = (*program.stages[:number], Stage(SCORES, axes, None, (), body))
            output = Output(SCORES, "float64", shape, tuple(range(len(shape))))
            return Scores(replace(program, stages=own, outputs=(output,)), len(stage.over))
    return None


def _exponentials(program: Program, stage: Stage) -> Iterator[Expression]:
    """Yield the exponentials in a sum that differ from term to term."""
    if stage.reducer == "sum":
        for node in inlined(program, stage.body, lambda map_: True).values():
            if is_exponential(node) and not node.axes.isdisjoint(stage.over):
                yield node


def is_exponential(node: Expression) -> bool:
    """Tell whether a node is an exponential itself. A sigmoid is none: it cannot overflow."""
    return isinstance(node, Call) and node.function in ("exp", "exp2")


def spread_of_scores(
    program: Program, wanted: float, judge: Judge, begin: Spread = ANY
) -> Spread | None:
    """Return a spread by which scores have about the ``wanted`` standard deviation; None if the
    program has no scores, or none that an operand sets so far apart. Scales are tried from the one
    on that is to ``begin`` with."""
    scores = scores_of(program)
    if scores is None:
        return None
    names = [operand.name for operand in program.operands if operand.drawn is None]
    for name in sorted(names, key=lambda name: name != begin.operand):
        scale = begin.scale if name == begin.operand else 1.0
        spread = _scaled(scores, program.operand[name], wanted, judge, scale)
        if spread is not None:
            return spread
    return None


def _scaled(
    scores: Scores, operand: Operand, wanted: float, judge: Judge, scale: float
) -> Spread | None:
    """Find a scale by secants of the logarithms, as scores grow by some power of the scale."""
    (least, most), power = (2.0**power for power in powers(operand.dtype)), 1.0
    before: tuple[float, float] | None = None
    for _ in range(STEPS):
        spread = Spread(False, scale, operand.name)
        found = scores.deviation(judge, spread)
        if not isfinite(found) or found <= 0:
            return None
        if wanted / NEAR <= found <= wanted * NEAR:
            return spread
        if before is not None and scale != before[0]:
            power = log(found / before[1]) / log(scale / before[0])
            if power < 0.1:
                return None
        before = scale, found
        scale = min(max(scale * (wanted / found) ** (1 / power), least), most)
    return None
