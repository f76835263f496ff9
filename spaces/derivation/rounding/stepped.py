"""Bounds of stages that are computed step by step (:mod:`spaces.language.cycles`).

Where each element of a state depends on its own element before, intervals go from step to step:
they grow as errors do. Where sums mix the elements of a state, intervals would grow by the sum of
all magnitudes at each step, and know nothing of signs that cancel, as those of ``S - (S k) k`` do.
There, errors are drawn: :data:`COPIES` of the state go through the same steps, each off by as much
as a step may round it, upwards, downwards or at random. They grow apart as kernels do, whose errors
behave as random ones (Higham and Mary, A new approach to probabilistic rounding error analysis,
SISC 41, 2019); :data:`MARGIN` times their spread is allowed.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import count
from typing import Any

import numpy as np

from tilewright.spaces.derivation.rounding.approximate import Approximate
from tilewright.spaces.derivation.rounding.approximate_arrays import (
    ApproximateArrays,
    over,
    unknown,
    write,
)
from tilewright.spaces.derivation.rounding.rows import grid
from tilewright.spaces.language.cycles import Cycle
from tilewright.spaces.language.evaluation import Elementwise, literal, value_of
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.stepped import along, kind_of
from tilewright.spaces.language.tree import AxisValue, Expression, Read
from tilewright.spaces.numerics.interval import Interval

COPIES = 8
"""Copies of a state, the first of which is rounded upwards, and the second downwards."""
MARGIN = 4.0
"""Says by how many times the root of their mean square an error may exceed the copies'."""

Piece = Callable[[Program, Stage, ApproximateArrays], Approximate]
"""Computes a stage at the points of a meaning."""


def mixes(program: Program, cycle: Cycle) -> bool:
    """Tell whether sums mix the elements of the state."""
    return any(program.stage[name].reducer == "sum" for name in cycle.stages)


def add_steps(
    cycle: Cycle,
    meaning: ApproximateArrays,
    values: Mapping[str, Mapping[str, np.ndarray]],
    arrays: dict[str, Approximate],
    piece: Piece,
    pause: Callable[[], None],
) -> None:
    """Add the stages of a cycle to the ``arrays`` that are known; ``meaning`` reads these, and
    ``values`` has the values of each stage's axes at which it is evaluated: all steps, or some that
    are computed first."""
    program = meaning.program
    stages = [program.stage[name] for name in cycle.stages]
    for stage in stages:
        shape = tuple(values[stage.name][axis].size for axis in stage.axes)
        arrays[stage.name] = unknown(shape, kind_of(program, stage.name))
    drawn = _Drawn.of(cycle, meaning, values) if mixes(program, cycle) else None
    every = values[stages[0].name][cycle.axis]
    for step in every[:: cycle.direction]:
        pause()
        if drawn is not None:
            drawn.begin()
        for stage in stages:
            at = {**values[stage.name], cycle.axis: np.array([step])}
            if drawn is None:
                found = piece(program, stage, replace(meaning, arrays=arrays, axes=grid(at)))
            else:
                found = drawn.step(stage, at, piece)
            place = step - every[0]
            write(arrays[stage.name], along(stage.axes, cycle.axis, slice(place, place + 1)), found)


@dataclass(frozen=True)
class _Drawn:
    """The stages of a ``cycle`` at the last two steps, as ``exact`` values, and as copies of these
    in another program, along its axis ``copy``."""

    cycle: Cycle
    exact: ApproximateArrays
    copied: ApproximateArrays
    copy: str
    generator: np.random.Generator

    @staticmethod
    def of(
        cycle: Cycle,
        meaning: ApproximateArrays,
        values: Mapping[str, Mapping[str, np.ndarray]],
    ) -> _Drawn:
        """Begin with no step."""
        program = meaning.program
        taken = {*program.extent, *program.stage, *program.operand}
        copy = next(n for n in (f"copy{i}" for i in count()) if n not in taken)
        stages = tuple(
            _copied(stage, copy, cycle.stages) if stage.name in cycle.stages else stage
            for stage in program.stages
        )
        made = replace(program, stages=stages, extents=(*program.extents, (copy, COPIES)))
        exact, copies = dict(meaning.arrays), dict(meaning.arrays)
        for name in cycle.stages:
            own, kind = {**values[name], cycle.axis: np.arange(2)}, kind_of(program, name)
            shape = tuple(own[axis].size for axis in program.stage[name].axes)
            exact[name] = unknown(shape, kind)
            copies[name] = Approximate(np.zeros((COPIES, *shape), kind))
        return _Drawn(
            cycle,
            replace(meaning, arrays=exact),
            replace(meaning, program=made, arrays=copies),
            copy,
            np.random.default_rng(0),
        )

    @property
    def now(self) -> int:
        """The place of this step among the last two, which rise."""
        return 1 if self.cycle.direction > 0 else 0

    def begin(self) -> None:
        """Begin a step: the last one is the one before."""
        for name in self.cycle.stages:
            axes, axis = self.exact.program.stage[name].axes, self.cycle.axis
            before, now = (along(axes, axis, slice(n, n + 1)) for n in (1 - self.now, self.now))
            exact, copied = self.exact.arrays[name], self.copied.arrays[name].value
            write(exact, before, _part(exact, now))
            copied[:, *before] = copied[:, *now]

    def step(self, stage: Stage, at: Mapping[str, np.ndarray], piece: Piece) -> Approximate:
        """Take a stage and its copies through the step that they are at; return its bounds."""
        part = along(stage.axes, self.cycle.axis, slice(self.now, self.now + 1))
        exact, copied = self.exact.arrays[stage.name], self.copied.arrays[stage.name]
        meaning = self._at(self.exact, at, 0)
        found = piece(meaning.program, stage, meaning)
        points = {self.copy: np.arange(COPIES), **at}
        program = self.copied.program
        values = _Values(self._at(self.copied, points, 1))
        copies = value_of(program, program.stage[stage.name], values, values.arrays.axes)
        copies = np.broadcast_to(copies, (COPIES, *found.value.shape))
        if found.interval is None:
            copied.value[:, *part] = copies
            write(exact, part, found)
            return found
        radius, free = _radius(found.value, found.interval)
        copies = copies + self._signs(radius.shape) * radius
        off = np.where(np.isfinite(found.value), copies - found.value, 0.0)
        spread = MARGIN * np.sqrt(np.mean(off * off, axis=0))
        free = free | ~np.isfinite(spread)
        spread = np.where(free, 0.0, np.maximum(spread, radius))
        copied.value[:, *part] = copies
        write(exact, part, _between(found.value, 0.0, free))
        return _between(found.value, spread, free)

    def _at(
        self, meaning: ApproximateArrays, at: Mapping[str, np.ndarray], first: int
    ) -> ApproximateArrays:
        """Return a meaning at points of one step, at which the last two steps are known; arrays
        have ``first`` dimensions more."""
        (step,) = at[self.cycle.axis]
        partial = dict(meaning.partial)
        for name in self.cycle.stages:
            own = {d + first: places for d, places in self.exact.partial.get(name, {}).items()}
            axes = self.exact.program.stage[name].axes
            own[axes.index(self.cycle.axis) + first] = np.arange(2) + (step - self.now)
            partial[name] = own
        return replace(meaning, axes=grid(at), partial=partial)

    def _signs(self, shape: tuple[int, ...]) -> np.ndarray:
        signs = 2.0 * self.generator.integers(0, 2, (COPIES, *shape), np.int8) - 1.0
        signs[0], signs[1] = 1.0, -1.0
        return signs


def _part(x: Approximate, part: tuple[slice, ...]) -> Approximate:
    return over(x, lambda values: values[part])


def _between(value: np.ndarray, spread: Any, free: np.ndarray) -> Approximate:
    return Approximate(value, Interval(value - spread, value + spread, free))


def _radius(value: np.ndarray, interval: Interval) -> tuple[np.ndarray, np.ndarray]:
    """Return how far values may be off in one step, and where they may be anything."""
    finite = np.isfinite(value)
    radius = np.maximum(interval.high - value, value - interval.low)
    free = interval.free | (finite & ~np.isfinite(radius))
    return np.where(finite & ~free, radius, 0.0), free


def _copied(stage: Stage, copy: str, names: Sequence[str]) -> Stage:
    """Return a stage with an axis more, along which it and those of its cycle have copies."""

    def visit(node: Expression) -> Expression:
        node = node.with_children(tuple(map(visit, node.children)))
        if isinstance(node, Read) and node.name in names:
            return replace(node, indices=(AxisValue(copy), *node.indices))
        return node

    return replace(stage, axes=(copy, *stage.axes), body=visit(stage.body))


@dataclass(frozen=True)
class _Values(Elementwise):
    """The meaning of expressions as the values of approximate ``arrays`` alone."""

    arrays: ApproximateArrays

    def number(self, value: float) -> Any:
        """Give a whole number as an integer."""
        return literal(value)

    def axis(self, name: str) -> Any:
        """Give the grid's values."""
        return self.arrays.axes[name]

    def read(self, name: str, indices: Sequence[Any], outside: float | None) -> Any:
        """Give the entries, or ``outside``."""
        found, within = self.arrays.entry(name, indices)
        if outside is None or within is True:
            return found.value
        return np.where(within, found.value, outside)
