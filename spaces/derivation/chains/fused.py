"""A derived chain, run with NumPy by tiles and by parts that are merged in any order.

This is what generated code does with lanes, warps, blocks and parts of a row, written plainly: the
meaning of a derivation, and how derivations are tested.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.spaces.derivation.chains.chain import Chain
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from tilewright.spaces.derivation.points import Points
from tilewright.spaces.language.functions import REDUCERS
from tilewright.spaces.language.program import Program, Stage
from tilewright.spaces.language.tree import Expression

Arrays = Mapping[str, np.ndarray]
Pick = Callable[[int], tuple[int, int]]
"""Picks the places of the two states that are merged next, from so many."""


NOWHERE = np.iinfo(np.int64).max
"""The place of no element."""


@dataclass(frozen=True)
class State:
    """A reduction's partial result for some elements of each row.

    ``seen`` tells which rows had any elements. ``place`` is where ``value`` was found, for
    ``argmax`` and ``argmin``.
    """

    value: np.ndarray
    seen: np.ndarray
    place: np.ndarray | None = None


States = Mapping[str, State]


class FusedPass:
    """One pass over rows: reductions that correct each other. ``arrays`` are all that their
    elements read besides states: operands and finished stages."""

    def __init__(
        self,
        program: Program,
        over: tuple[str, ...],
        pass_: Sequence[ChainReduction],
        arrays: Arrays,
    ) -> None:
        self.program = program
        self.over = over
        self.reductions = pass_
        self.arrays = arrays

    def states(self, elements: np.ndarray, tile: int) -> States:
        """Return the states of the elements at some places along the row, tile after tile."""
        states = self.empty()
        for start in range(0, len(elements), tile):
            states = self.extended(states, elements[start : start + tile])
        return states

    def empty(self) -> States:
        """Return the states of no elements."""
        found: dict[str, State] = {}
        for r in self.reductions:
            found[r.name] = self.part(r, np.arange(0), found)
        return found

    def extended(self, old: States, elements: np.ndarray) -> States:
        """The states of some more elements: old ones are corrected, new ones come up to date."""
        new: dict[str, State] = {}
        for r in self.reductions:
            part = self.part(r, elements, {**old, **new})
            new[r.name] = self.joined(r, self.corrected(r, old, new), part)
        return new

    def merged(self, a: States, b: States) -> States:
        """Return the states of two parts together."""
        new: dict[str, State] = {}
        for r in self.reductions:
            new[r.name] = self.joined(r, self.corrected(r, a, new), self.corrected(r, b, new))
        return new

    def results(self, states: States) -> dict[str, np.ndarray]:
        """Compute the final value of each reduction of the program from its state."""
        return {r.name: self.result(r, states) for r in self.reductions}

    def part(self, r: ChainReduction, elements: np.ndarray, states: States) -> State:
        """The state of some elements, while results are as in ``states``."""
        reducer, shape = REDUCERS[r.reducer], self._shape(r)
        points = self._points(r, elements, states)
        inside = np.ones((*shape, len(elements)), bool)
        for condition in self._conditions:
            inside &= points.value(condition)
        dtype = self._dtype
        values = np.broadcast_to(points.value(r.element), inside.shape).astype(dtype)
        values = np.where(inside, values, dtype.type(reducer.identity))
        combine: np.ufunc = reducer.combine  # type: ignore[assignment]
        value = combine.reduce(values, axis=-1, initial=dtype.type(reducer.identity))
        place = None
        if reducer.argument:
            found = np.where(inside & _same(values, value[..., None]), elements, NOWHERE)
            place = found.min(axis=-1, initial=NOWHERE)
        return State(value, np.asarray(inside.any(axis=-1)), place)

    def corrected(self, r: ChainReduction, own: States, new: States) -> State:
        """H from the part's ``own`` results to the ``new`` ones. What is empty stays empty: it has
        no results to come from."""
        state = own[r.name]
        if r.correction is None:
            return state
        value = self.moved(r, own, {**own, **new})
        return State(np.where(state.seen, value, state.value), state.seen, state.place)

    def moved(self, r: ChainReduction, own: States, new: States) -> np.ndarray:
        """Return the state of ``r`` in ``own``, corrected from these results to the ``new``
        ones."""
        value = own[r.name].value
        match r.correction:
            case Scaling(function, exponent):
                before, after = self._at(r, exponent, own), self._at(r, exponent, new)
                with np.errstate(all="ignore"):
                    difference = np.where(before == after, 0, after - before)
                    return value * getattr(np, function)(difference).astype(value.dtype)
            case Series(about, terms):
                before, after = self._at(r, about, own), self._at(r, about, new)
                with np.errstate(all="ignore"):
                    for power, total in terms:
                        value = value + (after - before) ** power * self._at(r, total, own)
        return value

    def joined(self, r: ChainReduction, a: State, b: State) -> State:
        """Return two states under the same results."""
        reducer = REDUCERS[r.reducer]
        value, seen = reducer.combine(a.value, b.value), a.seen | b.seen
        if a.place is None or b.place is None:
            return State(value, seen)
        places = (
            np.where(_same(a.value, value), a.place, NOWHERE),
            np.where(_same(b.value, value), b.place, NOWHERE),
        )
        return State(value, seen, np.minimum(*places))

    def result(self, r: ChainReduction, states: States) -> np.ndarray:
        """Return one reduction's result; the reducer's identity in rows without elements."""
        state = states[r.name]
        if state.place is not None:
            return np.where(state.seen, state.place, 0)
        return np.where(state.seen, self._at(r, r.result, states), state.value)

    @property
    def _conditions(self) -> tuple[Expression, ...]:
        return tuple(c for c in self.program.conditions if not c.axes.isdisjoint(self.over))

    @property
    def _dtype(self) -> np.dtype:
        floats = [a.dtype for a in self.arrays.values() if a.dtype.kind == "f"]
        return np.result_type(*floats) if floats else np.dtype(np.float64)

    def _shape(self, r: ChainReduction) -> tuple[int, ...]:
        return self.program.shape(r.axes)

    def _at(self, r: ChainReduction, expression: Expression, states: States) -> np.ndarray:
        """Return an expression of states for each row."""
        value = self._points(r, np.zeros(1, np.int64), states).value(expression)
        return np.broadcast_to(value, (*self._shape(r), 1))[..., 0]

    def _points(self, r: ChainReduction, elements: np.ndarray, states: States) -> Points:
        """Return a row's own axes first, and all elements of the row along the last dimension."""
        rank = len(r.axes) + 1
        along = np.unravel_index(elements, self.program.shape(self.over)) if self.over else ()
        axes = dict(zip(self.over, along, strict=True))
        for dimension, axis in enumerate(r.axes):
            shape = [1] * rank
            shape[dimension] = -1
            axes[axis] = np.arange(self.program.extent[axis]).reshape(shape)
        return Points({**self.arrays, **{n: s.value for n, s in states.items()}}, axes)


def evaluate(
    program: Program,
    chain: Chain,
    inputs: Arrays,
    parts: Sequence[np.ndarray],
    tile: int,
    pick: Pick = lambda count: (0, 1),
    kind: type[FusedPass] = FusedPass,
) -> dict[str, np.ndarray]:
    """Evaluate all stages of a program, by name, with those of ``chain`` fused.

    ``parts`` divide the elements of a row, each by its place along the chain's axes (the last the
    fastest). Each part is computed alone, ``tile`` elements at a time; then two parts are merged at
    a time, as ``pick`` says. The arrays' floating-point dtype is the one computed in.
    """
    arrays = {n: a.astype(np.int64) if a.dtype.kind in "iu" else a for n, a in inputs.items()}
    for pass_ in chain.passes:
        names = {r.name for r in pass_}
        _complete(program, arrays, chain, names)
        run = kind(program, chain.over, pass_, arrays)
        states = [run.states(part, tile) for part in parts]
        while len(states) > 1:
            first, second = sorted(pick(len(states)))
            other = states.pop(second)
            states[first] = run.merged(states[first], other)
        arrays |= run.results(states[0])
    _complete(program, arrays, chain, set())
    return arrays


def _complete(program: Program, arrays: dict[str, np.ndarray], chain: Chain, now: set[str]) -> None:
    """Add stages that can be computed, without reductions that a pass is yet to give."""
    fused = {r.name for pass_ in chain.passes for r in pass_}
    for stage in program.stages:
        ready = all(read.name in arrays for read in stage.body.reads)
        if stage.name not in arrays and stage.name not in fused and ready:
            arrays[stage.name] = _unfused(program, stage, arrays)


def _unfused(program: Program, stage: Stage, arrays: Arrays) -> np.ndarray:
    own = ChainReduction(
        stage.name, stage.reducer or "sum", stage.axes, stage.body, None, stage.body
    )
    run = FusedPass(program, stage.over, [own], arrays)
    size = int(np.prod(program.shape(stage.over), dtype=np.int64))
    state = run.part(own, np.arange(size), {})
    return state.value if state.place is None else np.where(state.seen, state.place, 0)


def _same(a: np.ndarray, b: np.ndarray) -> np.ndarray:
    """Equal, or both NaN."""
    return (a == b) | (np.isnan(a) & np.isnan(b))
