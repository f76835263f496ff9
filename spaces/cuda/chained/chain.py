"""The CUDA C++ of a chain on the fragments of one tile: scores become weights, states become new.

Matrix instructions leave sixteen rows of a product on the 32 lanes of a warp, two rows to a lane:
element ``e`` of a lane is of row ``lane / 4 + 8 * (e / 2 % 2)`` and of column ``2 * (lane % 4) +
e % 2 + 8 * (e / 4)``. Four lanes share a row. A state that others read is joined across them in
each tile; one that only results read stays each lane's own until the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property

from spaces.algebra.mapping_emit import indented
from spaces.cuda.chained.scopes import POWERS, RowScope, ScoreScope, ThreadScope
from spaces.derivation.algebra import ZERO
from spaces.derivation.chained.hiding import hiding
from spaces.derivation.chained.levels import Levels
from spaces.derivation.chained.reference import may_lag
from spaces.derivation.chained.view import Chained
from spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from spaces.derivation.scopes import Leaf, series
from spaces.language.tree import Expression, Negation, Read

IDENTITIES = {"sum": "0.0f", "prod": "1.0f", "max": "-TW_INFINITY", "min": "TW_INFINITY"}
JOINED = {
    "sum": "{} + {}",
    "prod": "{} * {}",
    "max": "tw::max_nan({}, {})",
    "min": "tw::min_nan({}, {})",
}
_FINITE = {"max": "tw::max_nan({}, -TW_FAR)", "min": "tw::min_nan({}, TW_FAR)"}
_EXTREMES = tuple(_FINITE)
ROWS = 2
"""Rows of a lane in each slice of sixteen."""

RESCALES = ("always", "moved", "late")
"""When sums and totals are corrected: in every tile, in those in which some row's results moved, or
where they moved by more than :data:`LATE`."""
LATE = 8.0
"""Powers of two that weights may be larger meanwhile: within the range of float16."""

HELPERS = """\
#define TW_INFINITY tw::bits_float(0x7f800000u)
#define TW_FAR 1e37f
TW_INLINE float tw_fused(float a, float b, float c) { return a * b + c; }
TW_INLINE float tw_tanh_of_score(float x) {
  return 1.0f - 2.0f * tw::reciprocal_approx(tw::exp2_approx(x * 2.885390081777927f) + 1.0f);
}
"""
"""The compiler makes one instruction of ``tw_fused``. ``TW_FAR`` is beyond any score, and multiples
of it are finite."""


@dataclass(frozen=True)
class FragmentChain:
    """Writes the chain of a slice of sixteen rows over one tile.

    ``chained`` has bare scores (:attr:`~spaces.derivation.chained.view.Chained.bare`), of which a
    lane has ``elements`` in a tile; ``score`` gives the C text of the one of an index. Rows of a
    lane over all its slices are ``rows``; row ``h`` of this slice is row ``r``, which the C text
    ``number`` gives. ``row_leaf`` gives the text of what differs from row to row, for row ``r``,
    and ``key_leaf`` of what differs from key to key, for row ``r`` and the key ``key``.
    ``ends`` tells whether some row's keys begin after the first, or end before the last that a
    tile has. ``rescale`` is one of :data:`RESCALES`; if it is ``late``, totals are those of a
    ``base`` that stays behind the results until the end: corrections hold for any. Results that
    come out the same for any base need none beside their states.
    """

    chained: Chained
    elements: int
    rows: int
    number: str
    score: Callable[[str], str]
    row_leaf: Leaf
    key_leaf: Leaf
    ends: tuple[bool, bool]
    rescale: str = "always"

    @cached_property
    def levels(self) -> Levels:
        """The loops over a tile."""
        return Levels(self.chained)

    @cached_property
    def row(self) -> RowScope:
        """What is the same along a row."""
        return RowScope("g", self.row_leaf, index="r")

    @cached_property
    def weights(self) -> Mapping[Expression, Callable[[str], str]]:
        """Where each weight is: in the place of the scores, or in an array ``weight0``, ..."""
        further = [weight for weight in self.levels.weights if weight != self.levels.in_place]
        found = {weight: _element(f"weight{i}") for i, weight in enumerate(further)}
        own = self.levels.in_place
        return found if own is None else {**found, own: self.score}

    def tile(self, masked: bool) -> Written:
        """The lines for a tile that begins with the key ``tile``, of which the lane's first is
        ``first``, of rows that see all its keys, or only some if ``masked``."""
        return _Tile(self, masked).written()

    @cached_property
    def hidden(self) -> Expression | None:
        """What hides a key where it is minus infinity, so that tiles are written once for all."""
        return hiding(self.chained) if not self.tracks or self.chained.conditions else None

    def hiding_tile(self) -> tuple[list[str], list[str], Written]:
        """The lines for any tile, of a chain that has :attr:`hidden`: what comes first, what hides
        the keys that rows do not see, to be left out where all count, and the rest."""
        return _Tile(self, False, self.hidden).hiding()

    def of_rows(self) -> list[str]:
        """Lines of a loop over rows ``r``, before the first tile, that compute what is the same
        along each and make its states those of nothing. To be written after all tiles are."""
        based = [f"base{k}[r] = state{k}[r];" for k in self.based]
        return [*self.row.lines, *self.no_states(), *based]

    def no_states(self) -> list[str]:
        """Lines that make the states of row ``r`` those of nothing."""
        scalars = enumerate(self.chained.scalars)
        begun = [f"state{k}[r] = {IDENTITIES[r.reducer]};" for k, r in scalars]
        return [*begun, "seen[r] = false;"]

    def declared(self) -> list[str]:
        """The arrays that :meth:`of_rows` sets."""
        names = [*self.row.declared, *(f"state{k}" for k in range(len(self.chained.scalars)))]
        names += [f"base{k}" for k in self.based]
        return [*(f"float {name}[{self.rows}];" for name in names), f"bool seen[{self.rows}];"]

    def joined_rows(self) -> list[str]:
        """Lines of a loop over rows ``r``, after the last tile, that join what lanes have, and
        declare :attr:`last_factors`."""
        lines = self._caught_up() if self.based else []
        for k, r in enumerate(self.chained.scalars):
            if not self.is_shared(r):
                lines += across_lanes(r.reducer, f"state{k}[r]")
        if self.chained.conditions:
            lines += [f"seen[r] = tw::shuffle_xor((int)seen[r], {n}) | seen[r];" for n in (1, 2)]
        return lines if self.tracks else [*lines, "seen[r] = low[r] < high[r];"]

    @cached_property
    def tracks(self) -> bool:
        """Whether tiles have to tell which rows have seen a key: where conditions leave keys out
        one by one, or the correction of nothing may be no number."""
        found = {r.correction for r in self.chained.reductions if r.correction}
        return bool(self.chained.conditions) or not all(map(self._is_finite, found))

    def _is_finite(self, correction: Scaling | Series) -> bool:
        """Whether it falls with a maximum alone: then that of nothing is zero or one."""
        tops = {Negation(r.state) for r in self.chained.scalars if r.reducer == "max"}
        return isinstance(correction, Scaling) and correction.exponent in tops

    @property
    def last_factors(self) -> list[str | None]:
        """The factor of each weighing's sums after the last tile, if there is one."""
        corrections = [w.reduction.correction for w in self.chained.weighings]
        if not self.based:
            return [None] * len(corrections)
        return [f"last{self.scalings.index(c)}" if c else None for c in corrections]

    def _caught_up(self) -> list[str]:
        """Bring totals from their base to the results."""
        lines: list[str] = []
        scopes = (self.states("base{}[r]", "l", lines), self.states("state{}[r]", "m", lines))
        for i, correction in enumerate(self.scalings):
            before, after = (scope.text(correction.exponent) for scope in scopes)
            power = scopes[0].power_of(correction.function, f"{after} - {before}")
            lines.append(f"const float last{i} = {power};")
        for k, r in enumerate(self.chained.scalars):
            if isinstance(r.correction, Scaling):
                lines.append(f"state{k}[r] *= last{self.scalings.index(r.correction)};")
        return lines

    def states(self, text: str, prefix: str, lines: list[str]) -> ThreadScope:
        """A scope that knows states, finite until the row has ended, so that an infinite extreme of
        a part makes no NaN of other parts."""
        return ThreadScope(prefix, self.state_leaf(text), lines, self.row)

    def state_leaf(self, text: str, based: str | None = None) -> Leaf:
        """The C texts of states by their numbers; ``based`` of those that totals have a base of."""
        known = {}
        for k, r in enumerate(self.chained.scalars):
            own = based if based and k in self.based else text
            known[r.name] = _FINITE.get(r.reducer, "{}").format(own.format(k))
        return lambda node: known.get(node.name) if isinstance(node, Read) else None

    @cached_property
    def scalings(self) -> tuple[Scaling, ...]:
        """The distinct corrections by factors."""
        corrections = (r.correction for r in self.chained.reductions)
        return tuple(dict.fromkeys(c for c in corrections if isinstance(c, Scaling)))

    @cached_property
    def based(self) -> tuple[int, ...]:
        """The states that lag behind and have a base beside them."""
        free = may_lag(self.chained)
        return tuple(k for k in self.lagging if self.chained.scalars[k].name not in free)

    @cached_property
    def lagging(self) -> tuple[int, ...]:
        """The states that others read and that these may stay behind; none if all are up to date
        in every tile."""
        if self.rescale != "late" or not can_be_late(self.chained):
            return ()
        scalars = enumerate(self.chained.scalars)
        return tuple(k for k, r in scalars if r.name in self._read)

    def is_shared(self, r: ChainReduction) -> bool:
        """Whether all four lanes of a row must know a state in each tile."""
        return r.name in self._read or isinstance(r.correction, Series)

    @cached_property
    def _read(self) -> frozenset[str]:
        """States that anything but results read."""
        return frozenset(read.name for body in self._bodies() for read in body.reads)

    def _bodies(self) -> Iterator[Expression]:
        yield from self.levels.weights
        for r in self.chained.reductions:
            if r.name in {scalar.name for scalar in self.chained.scalars}:
                yield r.element
            yield from r.corrected_by


@dataclass(frozen=True)
class Written:
    """The lines of a chain over a tile. Afterwards the sums of each weighing are to be multiplied
    by the array by ``h`` that ``factors`` names, if ``moved`` holds, which is C, or None if they
    always are."""

    lines: list[str]
    factors: list[str | None]
    moved: str | None


def can_be_late(chained: Chained) -> bool:
    """Whether totals may stay behind results: if they are corrected by factors, and what they are
    corrected to is not corrected itself."""
    corrections = [r.correction for r in chained.reductions if r.correction]
    read = {name for c in corrections if isinstance(c, Scaling) for name in _names(c.exponent)}
    plain = {r.name for r in chained.scalars if r.correction is None}
    return bool(corrections) and all(isinstance(c, Scaling) for c in corrections) and read <= plain


def _names(expression: Expression) -> set[str]:
    return {read.name for read in expression.reads}


@dataclass
class _Tile:
    """The lines of one tile, in the order of its loops. Lines for each row wait until a loop over
    the elements, or the end, needs them."""

    chain: FragmentChain
    masked: bool
    hidden: Expression | None = None
    lines: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    factors: dict[Scaling, str] = field(default_factory=dict)
    arrays: list[str] = field(default_factory=list)

    def __post_init__(self) -> None:
        chain = self.chain

        def scope(prefix: str, leaf: Leaf) -> RowScope:
            return RowScope(prefix, leaf, self.waiting, chain.row, index="h")

        self.old = scope("o", chain.state_leaf("state{}[r]", based="base{}[r]"))
        self.found = scope("c", chain.state_leaf("next{}[h]"))
        self.new = scope("n", chain.state_leaf("next{}[h]", based="chosen{}[h]"))
        self.parts: dict[int, tuple[float, Expression]] = {}

    def hiding(self) -> tuple[list[str], list[str], Written]:
        """The lines before keys are hidden, those that hide them, and all after."""
        first = [f"bool any[{ROWS}] = {{}};"] * bool(self.chain.chained.conditions)
        place, body = self.chain.score("e"), list[str]()
        if self.hidden is not None and self.hidden != self.chain.chained.score:
            scope = ScoreScope("x", self._leaf(None), body, self.new)
            body.append(f"{place} = {scope.text(self.hidden)};")
            first += self._elements(body)
        body = []
        self._ends()
        inside = self._inside(ThreadScope("x", self._leaf(self.hidden), body, self.new))
        if inside:
            body.append(f"if (!inside) {place} = -TW_INFINITY;")
        self._flush()
        hide, self.lines = [*self.lines, *(self._elements(body) if inside else [])], []
        return first, hide, self.written()

    def written(self) -> Written:
        levels, chained = self.chain.levels, self.chain.chained
        if self.masked:
            self._ends()
        for level in range(levels.last + 1):
            self._loop(level)
            for k, r in levels.scalars(level):
                self._join(k, r)
            if level == 0 and self.chain.lagging:
                self._choose()
        corrections = [weighing.reduction.correction for weighing in chained.weighings]
        factors = [self._factor(c) if isinstance(c, Scaling) else None for c in corrections]
        self._remember()
        self._flush()
        scopes = (self.old, self.found, self.new)
        names = [*self.arrays, *(n for s in scopes for n in s.declared), *self.factors.values()]
        declared = [f"float {name}[{ROWS}];" for name in dict.fromkeys(names)]
        further = len(self.chain.weights) - (levels.in_place is not None)
        declared += [f"float weight{i}[{self.chain.elements}];" for i in range(further)]
        return Written([*declared, *self.lines], factors, self._moved(factors))

    def _moved(self, factors: Sequence[str | None]) -> str | None:
        """Whether sums are to be corrected."""
        names = [name for name in dict.fromkeys(factors) if name]
        if self.chain.lagging:
            return "moved"
        if self.chain.rescale == "always" or not names:
            return None
        changed = " || ".join(f"{name}[{h}] != 1.0f" for name in names for h in range(ROWS))
        return f"tw::any_lane({changed})"

    def _choose(self) -> None:
        """Catch up with the results if some row's are far from the base of its totals."""
        self.lines.append("bool far = false;")
        for i, correction in enumerate(self.chain.scalings):
            before = self.old.text(correction.exponent)
            after = self.found.text(correction.exponent)
            scale = POWERS[correction.function]
            self.waiting += [
                f"change{i}[h] = ({after} - {before}) * {scale!r}f;",
                f"far |= !(change{i}[h] >= -{LATE}f && change{i}[h] <= {LATE}f);",
            ]
            self.arrays.append(f"change{i}")
            self.factors[correction] = f"factor{i}"
        self._flush()
        self.lines.append("const bool moved = tw::any_lane(far);")
        for i in range(len(self.chain.scalings)):
            self.waiting.append(f"factor{i}[h] = moved ? tw::exp2_approx(change{i}[h]) : 1.0f;")
        for k in set(self.chain.lagging) - set(self.chain.based):
            self.waiting.append(f"if (!moved) next{k}[h] = state{k}[r];")
        for k in self.chain.based:
            self.waiting += [
                f"chosen{k}[h] = moved ? next{k}[h] : base{k}[r];",
                f"base{k}[r] = chosen{k}[h];",
            ]
            self.arrays.append(f"chosen{k}")

    # -- rows --------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write the loop over rows of what waits."""
        if self.waiting:
            self.lines += over_rows([f"const int r = {self.chain.number};", *self.waiting])
            self.waiting.clear()

    def _ends(self) -> None:
        """Where the keys of each row begin and end, from the lane's first key on."""
        low, high = self.chain.ends
        self.lines += [f"int from[{ROWS}];"] * low + [f"int to[{ROWS}];"] * high
        self.waiting += ["from[h] = low[r] - first;"] * low + ["to[h] = high[r] - first;"] * high
        if self.chain.chained.conditions and self.hidden is None:
            self.lines.append(f"bool any[{ROWS}] = {{}};")

    def _join(self, k: int, r: ChainReduction) -> None:
        """The state ``k`` with what the tile has."""
        scale, rest = self.parts[k]
        part = f"part{k}[h]"
        self.waiting.append(f"{part} = {JOINED[r.reducer].format(part, f'part{k}[h + 2]')};")
        if self.chain.is_shared(r):
            self.waiting += across_lanes(r.reducer, part)
        if scale != 1:
            self.waiting.append(f"{part} *= {scale!r}f;")
        if rest != ZERO:
            self.waiting.append(f"{part} += {self.new.text(rest)};")
        before = self._corrected(k, r)
        self.waiting.append(f"next{k}[h] = {JOINED[r.reducer].format(before, part)};")
        self.arrays.append(f"next{k}")

    def _corrected(self, k: int, r: ChainReduction) -> str:
        state = f"state{k}[r]"
        match r.correction:
            case Scaling():
                return f"{state} * {self._factor(r.correction)}[h]"
            case Series():
                moved = " + ".join([state, *series(r.correction, self.old, self.new)])
                return f"(seen[r] ? {moved} : {state})"
        return state

    def _factor(self, correction: Scaling) -> str:
        if correction not in self.factors:
            name = f"factor{len(self.factors)}"
            before, after = self.old.text(correction.exponent), self.new.text(correction.exponent)
            power = self.new.power_of(correction.function, f"{after} - {before}")
            known = f"seen[r] ? {power} : 1.0f" if self.chain.tracks else power
            self.waiting.append(f"{name}[h] = {known};")
            self.factors[correction] = name
        return self.factors[correction]

    def _remember(self) -> None:
        """The new states become the old ones of the next tile."""
        scalars = range(len(self.chain.chained.scalars))
        self.waiting += [f"state{k}[r] = next{k}[h];" for k in scalars]
        low, high = self.chain.ends
        if not self.chain.tracks:
            return
        if (self.masked or self.hidden) and self.chain.chained.conditions:
            self.waiting += [f"any[h] |= (bool)tw::shuffle_xor((int)any[h], {n});" for n in (1, 2)]
            self.waiting.append("seen[r] |= any[h];")
        elif self.masked and (low or high):
            self.waiting.append("seen[r] |= low[r] < tile + TW_KEYS && high[r] > tile;")
        else:
            self.waiting.append("seen[r] = true;")

    # -- elements ----------------------------------------------------------------------------------

    def _loop(self, level: int) -> None:
        body: list[str] = []
        held = self.chain.levels.held if level and not self.hidden else self.hidden
        scope = ThreadScope("x", self._leaf(held), body, self.new)
        inside = self._inside(scope) if self.masked else None
        for k, r in self.chain.levels.scalars(level):
            part = f"part{k}[e / 2 % 4]"
            value = _selected(inside, self._element(k, r, scope), IDENTITIES[r.reducer])
            body.append(f"{part} = {JOINED[r.reducer].format(part, value)};")
        body += self._stores(level, scope, inside)
        self._flush()
        for k, r in self.chain.levels.scalars(level):
            begun = ", ".join([IDENTITIES[r.reducer]] * 2 * ROWS)
            self.lines.append(f"float part{k}[{2 * ROWS}] = {{{begun}}};")
        self.lines += self._elements(body)

    def _elements(self, body: Sequence[str]) -> list[str]:
        """A loop over all elements. The keys of some may be past the last: they read that one's."""
        last = self.chain.chained.key.extent - 1
        key = f"tw_least(first + at, {last})" if self.masked or self.hidden else "first + at"
        return [
            "#pragma unroll",
            f"for (int e = 0; e < {self.chain.elements}; e++) {{",
            "  const int h = e / 2 % 2, at = e / 4 * 8 + e % 2;",
            f"  const int r = {self.chain.number}, key = {key};",
            *indented(body),
            "}",
        ]

    def _element(self, k: int, r: ChainReduction, scope: ThreadScope) -> str:
        """What joins the part ``k`` of each element. Of an extreme of multiples, that is what they
        are multiples of: the multiple is taken once a row."""
        self.parts[k] = 1.0, ZERO
        if r.reducer in _EXTREMES:
            own, rest = scope.apart(scope.scaled_terms(r.element))
            if len(own) == 1 and own[0][0] > 0:
                ((scale, atom),) = own
                self.parts[k] = scale, rest
                return scope.text(atom)
        return scope.text(r.element)

    def _leaf(self, held: Expression | None) -> Leaf:
        """What an element reads; ``held`` is in the place of the score."""
        chained, score = self.chain.chained, self.chain.score("e")

        def leaf(node: Expression) -> str | None:
            if node == held or (node == chained.score and held is None):
                return score
            return self.chain.key_leaf(node)

        return leaf

    def _inside(self, scope: ThreadScope) -> str | None:
        """The test whether the key counts for the row."""
        low, high = self.chain.ends
        tests = ["at >= from[h]"] * low + ["at < to[h]"] * high
        for condition in self.chain.chained.conditions:
            left, right = scope.text(condition.left), scope.text(condition.right)
            tests.append(f"{left} {condition.operator} {right}")
        if not tests:
            return None
        scope.lines.append(f"const bool inside = {' && '.join(tests)};")
        if self.chain.chained.conditions:
            scope.lines.append("any[h] |= inside;")
        return "inside"

    def _stores(self, level: int, scope: ThreadScope, inside: str | None) -> list[str]:
        """Weights, and what is kept for later loops."""
        lines, levels = [], self.chain.levels
        for weight, place in self.chain.weights.items():
            if levels.of(weight) == level:
                lines.append(f"{place('e')} = {_selected(inside, scope.text(weight), '0.0f')};")
        if level == 0 and levels.held is not None and not self.hidden:
            lines.append(f"{self.chain.score('e')} = {scope.text(levels.held)};")
        return lines


def over_rows(body: Sequence[str]) -> list[str]:
    """A loop over the rows ``h`` of a slice."""
    return ["#pragma unroll", f"for (int h = 0; h < {ROWS}; h++) {{", *indented(body), "}"]


def across_lanes(reducer: str, value: str) -> list[str]:
    """Lines that join a variable across the four lanes of a row."""
    join = JOINED[reducer]
    return [f"{value} = {join.format(value, f'tw::shuffle_xor({value}, {n})')};" for n in (1, 2)]


def _element(name: str) -> Callable[[str], str]:
    return lambda e: f"{name}[{e}]"


def _selected(inside: str | None, value: str, identity: str) -> str:
    return f"(inside ? {value} : {identity})" if inside else value
