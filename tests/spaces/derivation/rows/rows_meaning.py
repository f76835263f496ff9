"""A view of rows, run with NumPy by its places alone: flat memory, rows, and parts of columns."""

from __future__ import annotations

import operator
from dataclasses import dataclass, field

import numpy as np

from tilewright.spaces.derivation.chains.chain_reduction import Scaling, Series
from tilewright.spaces.derivation.rows.view import Rows
from tilewright.spaces.language.evaluation import OPERATIONS
from tilewright.spaces.language.functions import FUNCTIONS, REDUCERS
from tilewright.spaces.language.tree import (
    AxisValue,
    Binary,
    Call,
    Comparison,
    Negation,
    Number,
    Read,
    Select,
)


def memory(array, values=None):
    """The array's memory from its first element to its last, flat; ``values`` are put into it."""
    size = 1 + sum((n - 1) * s for n, s in zip(array.shape, array.strides, strict=True))
    flat = np.full(size, np.nan)
    view = np.lib.stride_tricks.as_strided(
        flat, array.shape, [8 * stride for stride in array.strides]
    )
    if values is not None:
        view[...] = values
    return flat, view


def grid(spans):
    """The index along each span, for all points in the order of memory."""
    extents = [span.extent for span in spans]
    return np.unravel_index(np.arange(int(np.prod(extents))), extents)


@dataclass
class Run:
    """All rows at once: values are (rows, columns of a part) or (rows, 1) arrays."""

    rows: Rows
    flat: dict
    states: dict = field(default_factory=dict)
    part: np.ndarray | None = None

    def value(self, node):
        match node:
            case Number(number):
                return np.float64(number)
            case Negation(inner):
                return -self.value(inner)
            case Binary(sign, left, right) | Comparison(sign, left, right):
                return OPERATIONS[sign](self.value(left), self.value(right))
            case Select(condition, then, otherwise):
                return np.where(*map(self.value, (condition, then, otherwise)))
            case Call(function, arguments):
                return FUNCTIONS[function].reference(*map(self.value, arguments))
            case AxisValue(name):
                side, place = self.rows.axis[name]
                index = grid(getattr(self.rows, side))[place]
                return index[:, None] if side == "rows" else index[self.part][None]
            case Read() if node in self.rows.places:
                return self.flat[node.name][self.where(self.rows.places[node])]
            case Read(name, _, _):
                return self.states[name]
        raise TypeError(node)

    def where(self, place):
        rows, columns = grid(self.rows.rows), grid(self.rows.columns)
        at = place.offset + np.zeros((len(rows[0]), 1), np.int64)
        at = at + sum(s * i[:, None] for s, i in zip(place.rows, rows, strict=True))
        for entry, step in place.gathers:
            at = at + step * self.value(entry).astype(np.int64)
        if place.by_column:
            at = at + sum(
                s * i[self.part][None] for s, i in zip(place.columns, columns, strict=True)
            )
        return at

    def reduced(self, pass_, part):
        """The states of one part of the columns."""
        run = Run(self.rows, self.flat, dict(self.states), part)
        for r in pass_:
            element = np.broadcast_to(run.value(r.element), (self.rows.row_count, len(part)))
            ufunc = REDUCERS[r.reducer].combine
            value = ufunc.reduce(element, axis=1, keepdims=True)
            run.states[r.name] = value
            if r.name in self.rows.ranks:
                steps, index = self.rows.ranks[r.name], grid(self.rows.columns)
                rank = sum(s * i[part] for s, i in zip(steps, index, strict=True))
                rank = np.where(element == value, rank, np.inf).min(axis=1, keepdims=True)
                run.states[r.name] = np.concatenate([value, rank], axis=1)
        return run

    def merged(self, pass_, a, b):
        new = Run(self.rows, self.flat, dict(self.states))
        for r in pass_:
            sides = []
            for side in (a, b):
                value = side.states[r.name]
                match r.correction:
                    case Scaling(function, exponent):
                        change = new.value(exponent) - side.value(exponent)
                        value = value * getattr(np, function)(change)
                    case Series(about, terms):
                        change = new.value(about) - side.value(about)
                        for power, total in terms:
                            value = value + change**power * side.value(total)
                sides.append(value)
            if r.name in self.rows.ranks:
                better = operator.gt if r.reducer == "argmax" else operator.lt
                (x, i), (y, j) = (np.split(side, 2, axis=1) for side in sides)
                first = better(x, y) | ((x == y) & (i < j))
                new.states[r.name] = np.where(first, sides[0], sides[1])
            else:
                new.states[r.name] = REDUCERS[r.reducer].combine(*sides)
        return new

    def run(self, pass_, parts):
        """Add the final results of a pass over parts of the columns."""
        found = [self.reduced(pass_, part) for part in parts]
        while len(found) > 1:
            found = [self.merged(pass_, found[-1], found[0]), *found[1:-1]]
        for r in pass_:
            value = found[0].value(r.result)
            if r.name in self.rows.ranks:
                value = found[0].states[r.name][:, 1:]
            self.states[r.name] = value


def computed(rows: Rows, inputs, form: str, parts: int, seed: int = 0):
    """The outputs by name, their columns divided at random among so many parts."""
    flat = {o.name: memory(o, inputs[o.name])[0] for o in rows.program.operands}
    run = Run(rows, flat)
    owners = np.random.default_rng(seed).integers(0, parts, rows.column_count)
    divided = [np.flatnonzero(owners == part) for part in range(parts)]
    for pass_ in getattr(rows, form):
        run.run(pass_, [part for part in divided if len(part)])
    run.part = np.arange(rows.column_count)
    found = {}
    for output in rows.outputs:
        target, view = memory(output.array)
        target[run.where(output.place)] = run.value(output.value)
        found[output.array.name] = view
    return found
