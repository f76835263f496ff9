"""The C of one row's chain over one tile of keys: scores become weights, and states are updated.

A reduction that reads states of others gets a loop over the tile of its own, after theirs. Old
states are corrected to the new results, as :mod:`spaces.cpu.rows` does it for single lanes, and
what the tile adds is computed with the new results. For softmax this is the online algorithm
(Milakov and Gimelshein, 2018; https://arxiv.org/abs/1805.02867), with corrections that are derived.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial

from tilewright.spaces.cpu.chained import places
from tilewright.spaces.cpu.chained.hiding import mask, shown
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.vectors.reducers import (
    BARE,
    EXTREMES,
    begun,
    identity,
    joined_operand,
    scaled_by,
)
from tilewright.spaces.derivation.chained.levels import Levels
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from tilewright.spaces.derivation.scopes import Leaf, Scope, combined, series, states_of
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Binary, Call, Expression, Read

SCORE = "score"
NAN = '__builtin_nanf("")'


def weight_tiles(chained: Chained) -> Mapping[Expression, str]:
    """Map each weight to the C variable of the tile that holds it: the scores' own tile, or a
    further one if the scores are read again later."""
    levels = Levels(chained)
    others = [weight for weight in levels.weights if weight != levels.in_place]
    own = {} if levels.in_place is None else {levels.in_place: SCORE}
    return own | {weight: f"weight{i}" for i, weight in enumerate(others)}


@dataclass
class RowChain:
    """Writes the chain of a row.

    ``row_leaf`` gives the C text of values that differ from row to row. ``key_leaf`` gives that of
    values that differ from key to key, for one of the ``unroll`` vectors in flight; its second
    argument tells whether some keys of the vector may not exist.
    """

    chained: Chained
    unroll: int
    lanes: int
    row_leaf: Leaf
    key_leaf: Callable[[int, bool], Leaf]
    lines: list[str] = field(default_factory=list)
    factors: dict[Scaling, str] = field(default_factory=dict)

    @property
    def width(self) -> int:
        """The number of keys in flight."""
        return self.unroll * self.lanes

    @cached_property
    def _levels(self) -> Levels:
        return Levels(self.chained)

    @cached_property
    def _maxima(self) -> Mapping[Read, Expression]:
        """The element that each maximum is taken of, by the read of the maximum."""
        found = {r.name: r.element for r in self.chained.scalars if r.reducer == "max"}
        bodies = [*(r.element for r in self.chained.scalars), *self._levels.weights]
        reads = (read for body in bodies for read in body.reads)
        return {read: found[read.name] for read in reads if read.name in found}

    # -- a tile ------------------------------------------------------------------------------

    def write(self, masked: bool) -> list[str]:
        """Return the lines for one tile of a row that sees all its keys, or only some if
        ``masked``."""
        self.lines, self.factors = [], {}
        known = magnitudes(self.chained.program)
        row = VectorScope("g", self.row_leaf, self.lines, magnitudes=known)
        old = VectorScope("o", begun_states(self.chained, "s"), self.lines, row)
        new = VectorScope("n", begun_states(self.chained, "t"), self.lines, row)
        for k, _ in enumerate(self.chained.scalars):
            self.lines.append(f"const vf s{k} = tw_set(state{k}[r]);")
        for level in range(self._levels.last + 1):
            self._loop(level, new, masked)
            self._states(level, old, new)
        self._scale(old, new)
        return C.block(*self.lines)

    def _loop(self, level: int, new: Scope, masked: bool) -> None:
        body: list[str] = []
        scalars = self._levels.scalars(level)
        found: dict[str, list[str]] = {r.name: [] for _, r in scalars}
        insides: list[str | None] = []
        for u in range(self.unroll):
            leaf = self._vector_leaf(u, level, masked)
            scope = _KeyScope(f"x{u}_", leaf, body, new, maxima=self._maxima)
            body += [f"const long v{u} = v + {u * self.lanes};", f"const long j{u} = tile + v{u};"]
            inside = self._inside(u, scope) if masked else None
            insides.append(inside)
            for _, r in scalars:
                value = scope.text(r.element)
                found[r.name].append(_selected(inside, value, identity(r.reducer)))
            body += self._stores(u, level, scope, inside)
        for k, r in scalars:
            if r.reducer in BARE:
                self.lines.append(f"tw_lanes nan{k} = {{0}};")
            for u, value in enumerate(found[r.name]):
                self.lines.append(f"vf a{k}_{u} = {identity(r.reducer)};")
                if r.reducer in EXTREMES:
                    first = None if masked else f"tile + {u * self.lanes}"
                    self.lines.append(places.begun(k, u, first))
                    body += places.taken(k, u, r.reducer, value, insides[u])
                else:
                    body += _added(k, u, r.reducer, value)
            body += _noticed(k, self.unroll) if r.reducer in BARE else []
        end = f"count + {self.width - 1}L) / {self.width} * {self.width}"
        self.lines += [
            f"for (long v = 0, end = ({end}; v < end; v += {self.width}) {{",
            *(f"  {line}" for line in body),
            "}",
        ]

    def _vector_leaf(self, u: int, level: int, masked: bool) -> Leaf:
        held = self._levels.held if level else None
        key = self.key_leaf(u, masked)

        def leaf(node: Expression) -> str | None:
            if node == held or (node == self.chained.score and held is None):
                return f"tw_load_float32({SCORE} + r * score_stride + v{u})"
            return key(node)

        return leaf

    def _inside(self, u: int, scope: Scope) -> str:
        """Write the mask of the keys of a vector that count, and return its variable."""
        inside = mask(scope, "low[r]", "high[r]", self.chained.conditions, u)
        if self.chained.conditions:
            scope.lines.append(f"any |= {inside};")
        return inside

    def _stores(self, u: int, level: int, scope: Scope, inside: str | None) -> list[str]:
        """Return the lines that store weights, and the value that later loops read again."""
        lines = []
        tiles = weight_tiles(self.chained)
        for weight in self._levels.weights:
            if self._levels.of(weight) == level:
                value = shown(inside, weight, scope.text(weight))
                place = f"{tiles[weight]} + r * score_stride + v{u}"
                lines.append(f"tw_store_float32({place}, {value});")
        if level == 0 and self._levels.held is not None:
            value, place = scope.text(self._levels.held), f"{SCORE} + r * score_stride + v{u}"
            lines.append(f"tw_store_float32({place}, {value});")
        return lines

    # -- states ------------------------------------------------------------------------------

    def _states(self, level: int, old: Scope, new: Scope) -> None:
        for k, r in self._levels.scalars(level):
            if r.reducer in EXTREMES:
                self.lines += places.met(k, r.reducer, range(self.unroll))
                self.lines.append(f"state{k}[r] = t{k}[0];")
                continue
            parts = [f"a{k}_{u}" for u in range(self.unroll)]
            part = f"tw_set({_across(k, r.reducer, parts)})"
            before = corrected(r, f"s{k}", lambda c: self._factor(c, old, new), old, new)
            if isinstance(r.correction, Series):
                before = f"(seen[r] ? {before} : s{k})"
            self.lines.append(f"const vf t{k} = {joined_operand(r.reducer, before, part)};")
            self.lines.append(f"state{k}[r] = t{k}[0];")

    def _scale(self, old: Scope, new: Scope) -> None:
        """Write the lines that multiply the sums by their corrections if results moved."""
        scaled: dict[Scaling, list[int]] = {}
        for number, weighing in enumerate(self.chained.weighings):
            if isinstance(weighing.reduction.correction, Scaling):
                scaled.setdefault(weighing.reduction.correction, []).append(number)
        for correction, numbers in scaled.items():
            factor = self._factor(correction, old, new)
            rows = [f"sums{number} + r * sum_stride" for number in numbers]
            stores = (
                f"tw_store_float32({p} + e, tw_load_float32({p} + e) * {factor});" for p in rows
            )
            body = " ".join(stores)
            end = f"e < {self.chained.width.extent}; e += {self.lanes}"
            self.lines.append(f"if ({factor}[0] != 1.0f) for (long e = 0; {end}) {{ {body} }}")

    def _factor(self, correction: Scaling, old: Scope, new: Scope) -> str:
        """Return the C variable of a correction's factor; it is 1, without computing it, if no
        state moved."""
        if correction not in self.factors:
            name = self.factors[correction] = f"f{len(self.factors)}"
            states = states_of(correction.exponent, new)
            moved = f"{new.text(states)} - {old.text(states)}"
            by = scaled_by(correction, new, f"moved_{name}")
            self.lines += [
                f"const vf moved_{name} = {moved};",
                f"vf {name} = tw_set(1.0f);",
                f"if (seen[r] && moved_{name}[0] != 0.0f) {name} = {by};",
            ]
        return self.factors[correction]


@dataclass
class _KeyScope(VectorScope):
    """A scope of one vector of keys, with cheaper exponentials.

    An exponential of states is computed as a power of two: that takes fewer steps, and the error
    that it adds grows with the exponent. If its exponent is the distance from a maximum, it is
    never positive and is a decay; ``maxima`` maps each maximum to the element that it is taken of.
    """

    maxima: Mapping[Read, Expression] = field(default_factory=dict)

    def value(self, node: Expression) -> str:
        """Return the C text of a node, with the cheaper forms of such exponentials."""
        match node:
            case Call("exp", (Binary("-", value, Read() as top),)) if value == self.maxima.get(top):
                return f"tw_decay({self.text(node.arguments[0])})"
            case Call("exp", (exponent,)) if self._reads_states(exponent):
                return f"tw_exp2({self.text(exponent)} * {self.number(math.log2(math.e))})"
        return super().value(node)

    def _reads_states(self, exponent: Expression) -> bool:
        return any(self.around and self.around.holds(read) for read in exponent.reads)


def _added(k: int, u: int, reducer: str, value: str) -> list[str]:
    """Return the lines that reduce a further value to part ``u`` of state ``k``.

    NaN is noted apart from a maximum or minimum: that is faster than instructions that pass it on.
    """
    part = f"a{k}_{u}"
    if reducer not in BARE:
        return [f"{part} = {joined_operand(reducer, part, value)};"]
    name = f"m{k}_{u}"
    return [f"const vf {name} = {value};", f"{part} = {BARE[reducer]}({part}, {name});"]


def _noticed(k: int, unroll: int) -> list[str]:
    """Return the lines that note NaN among ``unroll`` vectors of state ``k``, two vectors at a
    time."""
    pairs = ((u, min(u + 1, unroll - 1)) for u in range(0, unroll, 2))
    return [f"nan{k} |= tw_unordered(m{k}_{u}, m{k}_{v});" for u, v in pairs]


def _across(k: int, reducer: str, parts: Sequence[str]) -> str:
    """Return all parts and lanes of state ``k``, reduced to one number."""
    if reducer not in BARE:
        return f"tw_across_{reducer}({combined(parts, partial(joined_operand, reducer))})"
    bare = BARE[reducer]
    total = combined(parts, lambda a, b: f"{bare}({a}, {b})")
    return f"tw_any_lane(nan{k}) ? {NAN} : tw_across_{bare.removeprefix('tw_')}({total})"


def begun_states(chained: Chained, letter: str) -> Leaf:
    """Return the leaf of states in the C variables ``letter`` plus their numbers, with the values
    that they have until the row has ended: infinite extremes count as finite."""
    known = {r.name: (f"{letter}{k}", r.reducer) for k, r in enumerate(chained.scalars)}

    def leaf(node: Expression) -> str | None:
        if not isinstance(node, Read) or node.name not in known:
            return None
        name, reducer = known[node.name]
        return begun(reducer, name)

    return leaf


def corrected(
    r: ChainReduction, state: str, factor: Callable[[Scaling], str], old: Scope, new: Scope
) -> str:
    """Return the C text of a state that was reduced under ``old`` states, corrected to ``new``
    ones: multiplied by the ``factor`` of its correction, or with the terms of its series added."""
    match r.correction:
        case Scaling():
            return f"({state} * {factor(r.correction)})"
        case Series():
            return f"({' + '.join([state, *series(r.correction, old, new)])})"
    return state


def _selected(inside: str | None, value: str, other: str) -> str:
    return f"tw_select({inside}, {value}, {other})" if inside else value
