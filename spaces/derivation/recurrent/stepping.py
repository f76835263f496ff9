"""A recurrence as stages that read themselves one step before, for kernels that go step by step.

    m[h, t] = max(inside(m[h, t - 1], least) + growth(t), v(t))
    z[h, t, d, e] = exp(m[h, t - 1] - m[h, t] + growth(t)) * z[h, t - 1, d, e]
        + exp(v(t) - m[h, t]) * k[t, d] * x[t, e]
    y[h, t, e] = exp(u(t) + m[h, t]) * sum[d](q[t, d] * z[h, t, d, e])

A state that is carried backwards is read at ``t + 1``.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np

from tilewright.spaces.derivation.algebra import ONE, ZERO, minus, plus, product, times
from tilewright.spaces.derivation.recurrent.view import Decay, Recurrence
from tilewright.spaces.derivation.stepped.view import SteppedView
from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Expression,
    Number,
    Read,
    Select,
)

LEAST = -float(np.finfo(np.float32).max)
"""The largest exponent of no terms: its powers are 0, and it has finite differences."""


def stepping(recurrence: Recurrence) -> SteppedView:
    """Return how a recurrence is computed step by step."""
    stages, own = tuple(_Steps(recurrence).stages), recurrence.program
    axes = own.stage[recurrence.name].axes
    alone = (a for a in axes if own.extent[a] == 1 and a != recurrence.position)
    program, rows = replace(own, stages=stages, conditions=()), (*recurrence.rows, *alone)
    direction = -1 if recurrence.backwards else 1
    return SteppedView(program, rows, recurrence.position, recurrence.lane, stages, direction)


@dataclass(frozen=True)
class _Steps:
    """Makes the stages; names with a dot are none of the language."""

    recurrence: Recurrence

    @property
    def stages(self) -> Iterable[Stage]:
        """Yield them in order."""
        own = self.recurrence
        if own.decay is not None:
            yield from self._scales(own.decay)
        yield self._stage("state", self._state, self._moved())
        yield from self._read()
        for name, value in own.values.items():
            if name != own.name:
                yield Stage(name, own.program.stage[name].axes, None, (), value)

    # -- axes --------------------------------------------------------------------------------------

    @cached_property
    def _state(self) -> tuple[str, ...]:
        own = self.recurrence
        return (*own.rows, own.position, *own.inner, own.lane)

    @cached_property
    def _scaled(self) -> tuple[str, ...]:
        """The axes of the scale: all inner ones if it has any."""
        own = self.recurrence
        axes = own.decay.axes if own.decay else frozenset()
        inner = not axes.isdisjoint(own.inner)
        return tuple(
            axis
            for axis in self._state
            if axis in (*own.rows, own.position)
            or (axis in own.inner and inner)
            or (axis == own.lane and axis in axes)
        )

    def _now(self, name: str, axes: Iterable[str]) -> Expression:
        return Read(f"{self.recurrence.name}.{name}", tuple(map(AxisValue, axes)))

    def _before(self, name: str, axes: Iterable[str], first: float) -> Expression:
        position = AxisValue(self.recurrence.position)
        before = Binary("+" if self.recurrence.backwards else "-", position, ONE)
        indices = (before if axis == position.name else AxisValue(axis) for axis in axes)
        return Read(f"{self.recurrence.name}.{name}", tuple(indices), first)

    # -- scales ------------------------------------------------------------------------------------

    @cached_property
    def _scale_before(self) -> Expression:
        return self._before("scale", self._scaled, LEAST)

    @cached_property
    def _scale_now(self) -> Expression:
        return self._now("scale", self._scaled)

    def _scales(self, decay: Decay) -> Iterator[Stage]:
        """Yield the largest exponent so far, and the powers of what is kept, added and read."""
        before, now = self._scale_before, self._scale_now
        largest = Call("max", (plus(before, decay.growth), decay.term))
        is_late = self.recurrence.exclusive
        read = plus(plus(decay.reading, before), decay.growth) if is_late else None
        exponents = {
            "kept": plus(minus(before, now), decay.growth),
            "added": minus(decay.term, now),
            "read": read or plus(decay.reading, now),
        }
        yield self._stage("scale", self._scaled, largest)
        for name, exponent in exponents.items():
            yield self._stage(name, self._scaled, Call(decay.function, (exponent,)))

    def _stage(self, name: str, axes: tuple[str, ...], body: Expression) -> Stage:
        return Stage(f"{self.recurrence.name}.{name}", axes, None, (), body)

    # -- the state ---------------------------------------------------------------------------------

    def _moved(self) -> Expression:
        """Return the state after a step."""
        own = self.recurrence
        kept, added = self._before("state", self._state, 0.0), list(own.added)
        if own.decay is not None:
            kept = Binary("*", self._now("kept", self._scaled), kept)
            added.append(self._now("added", self._scaled))
        parts = (product(self._some(added, inner)) for inner in (False, True))
        return plus(kept, times(*parts))

    def _read(self) -> Iterable[Stage]:
        """Yield the stages that make the sum of the state: factors that inner axes are in, and
        then the others."""
        own = self.recurrence
        factors = list(own.read)
        if own.decay is not None:
            factors.append(self._now("read", self._scaled))
        state = self._before("state", self._state, 0.0) if own.exclusive else None
        term = product((*self._some(factors, True), state or self._now("state", self._state)))
        axes = tuple(axis for axis in self._state if axis not in own.inner)
        if own.inner:
            yield Stage(f"{own.name}.sum", axes, "sum", own.inner, term)
            term = self._now("sum", axes)
        value = product((term, *self._some(factors, False)))
        if own.exclusive:  # before the first position, there are no terms
            first = own.extent(own.position) - 1 if own.backwards else 0
            is_there = Comparison("!=", AxisValue(own.position), Number(float(first)))
            value = Select(is_there, value, ZERO)
        yield Stage(own.name, own.program.stage[own.name].axes, None, (), value)

    def _some(self, factors: Iterable[Expression], inner: bool) -> list[Expression]:
        """Return the factors that inner axes are in, or those that none is in."""
        axes = self.recurrence.inner
        return [node for node in factors if (not node.axes.isdisjoint(axes)) == inner]
