"""The CUDA C++ of a chain over one tile: loops over a lane's elements, and lines for rows
between."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.spaces.cuda.chains.access import key_number, row_number
from tilewright.spaces.cuda.chains.corrections import Corrections
from tilewright.spaces.cuda.chains.ends import keys_of
from tilewright.spaces.cuda.chains.far import Shift
from tilewright.spaces.cuda.chains.lanes import FINITE, REFERENCES, ROWS, over_rows, selected
from tilewright.spaces.cuda.chains.parts import Parts
from tilewright.spaces.cuda.chains.scopes import NEAR, ExactScope, RowScope, Terms, ThreadScope
from tilewright.spaces.cuda.chains.scores import ODD, OF_ROW, OWN, ScoreScope, by_size, near_scores
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling
from tilewright.spaces.derivation.scopes import Leaf
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Expression

if TYPE_CHECKING:
    from tilewright.spaces.cuda.chains.chain import FragmentChain


@dataclass(frozen=True)
class Written:
    """The lines of a chain over a tile, and how sums are corrected afterwards.

    The sums of each weighing are multiplied by the array by ``h`` that ``factors`` names, if
    ``moved`` holds, which is a C condition, or None if they always are.
    """

    lines: list[str]
    factors: list[str | None]
    moved: str | None


@dataclass
class TileChain:
    """The lines of one tile, in the order of its loops.

    The lines ``between`` come where the states are known that further loops read. Lines for each
    row wait until a loop over the elements, or the end, needs them.
    """

    chain: FragmentChain
    masked: bool
    masked_value: Expression | None = None
    between: Sequence[str] = ()
    lines: list[str] = field(default_factory=list)
    waiting: list[str] = field(default_factory=list)
    arrays: list[str] = field(default_factory=list)
    sums: dict[Expression, Terms] = field(default_factory=dict)
    of_row: str = ""

    def __post_init__(self) -> None:
        chain = self.chain

        def scope(prefix: str, state: Leaf) -> RowScope:
            def leaf(node: Expression) -> str | None:
                return self.of_row if node == OF_ROW else state(node)

            return RowScope(prefix, leaf, self.waiting, chain.row, index="h")

        # infinities stay if totals may lag: so any first result is far from that of no keys
        forms = {} if chain.lagging else FINITE
        self.old = scope("o", chain.state_leaf("state{}[r]", "base{}[r]", forms))
        self.found = scope("c", chain.state_leaf("next{}[h]"))
        self.raw = scope("w", chain.state_leaf("next{}[h]", forms={}))
        self.new = scope("n", self._references())
        self.parts = Parts(chain, self.new)
        self.corrections = Corrections(chain, self.old, self.found, self.raw, self.arrays)

    def _references(self) -> Leaf:
        """Return the leaf of references, the extremes that elements are measured from."""
        leaf = self.chain.state_leaf("next{}[h]", "chosen{}[h]", REFERENCES)
        free = {self.chain.chained.scalars[k].name: f"reference{k}[h]" for k in self.chain.free}
        return lambda node: free.get(getattr(node, "name", "")) or leaf(node)

    def hiding(self, apart: bool) -> tuple[list[str], list[list[str]], Written]:
        """Return the lines before keys are hidden, the lines that hide them, and all after.

        If ``apart``, those that hide keys before each row's first and those that hide keys after
        its last are separate.
        """
        first = [f"bool any[{ROWS}] = {{}};"] * bool(self.chain.chained.conditions)
        if self.masked_value is not None and self.masked_value != self.chain.chained.score:
            first += self._values(self.masked_value)
        low, high = self.chain.ends
        sides = [(low, False), (False, high)] if apart else [(low, high)]
        hide = [self._hidden(*side) for side in sides]
        return first, hide, self.written()

    def _hidden(self, low: bool, high: bool) -> list[str]:
        """Print how keys of some rows are hidden: before the first if ``low``, after the last if
        ``high``."""
        body = list[str]()
        self._ends(low, high)
        scope = ThreadScope("x", self._leaf(self.masked_value), body, self.new)
        inside = self._inside(scope, low, high)
        if inside:
            body.append(f"if (!inside) {self.chain.score('e')} = -TW_INFINITY;")
        self._flush()
        lines, self.lines = [*self.lines, *(self._elements(body) if inside else [])], []
        return lines

    def _values(self, node: Expression) -> list[str]:
        """Print how a value of each key is put in the place of its score."""
        place, body = self.chain.score("e"), list[str]()
        number, row = key_number(self.chain.chained), row_number(self.chain.chained)

        def known(node: Expression) -> str | None:
            return "(float)first" if node == number else None

        tile = RowScope("t", known, self.waiting, self.chain.row, index="h")
        loops = []
        for odd in (*(polynomial for _, polynomial in ODD), ()):
            body = []
            scope = ScoreScope(
                "x", self._leaf(None), body, self.new, tile=tile, key=number, row=row, odd=odd
            )
            own, self.sums[node], self.of_row = scope.parted(node)
            body.append(f"{place} = {own};")
            loops.append(self._elements(body))
        self._flush()
        declared = [f"float {name}[{ROWS}];" for name in tile.declared]
        lines, self.lines = [*declared, *self.lines], []
        limits = near_scores(scope, node, self.chain.chained.score)
        if not limits:
            return [*lines, *loops[-1]]
        largest = self._elements([f"largest[e % 4] = tw::max_nan(largest[e % 4], fabsf({place}));"])
        return [*lines, "float largest[4] = {};", *largest, *by_size(limits, loops)]

    def written(self) -> Written:
        """Return the lines of all loops, and the factors that they leave for sums."""
        levels, chained = self.chain.levels, self.chain.chained
        if self.masked:
            self._ends(*self.chain.ends)
        for level in range(levels.last + 1):
            self._loop(level)
            for k, r in levels.scalars(level):
                self._join(k, r)
            if level == 0 and self.chain.lagging:
                self._catch_up()
            if level == 0 and self.between:
                self._flush()
                self.lines += self.between
        corrections = self.corrections
        scalings = [weighing.reduction.correction for weighing in chained.weighings]
        factors = [corrections.factor(c) if isinstance(c, Scaling) else None for c in scalings]
        self._remember()
        self._flush()
        scopes = (self.old, self.found, self.raw, self.new)
        names = [*self.arrays, *(n for s in scopes for n in s.declared)]
        names += corrections.factors.values()
        declared = [f"float {name}[{ROWS}];" for name in dict.fromkeys(names)]
        further = len(self.chain.weights) - (levels.in_place is not None)
        declared += [f"float weight{i}[{self.chain.elements}];" for i in range(further)]
        return Written([*declared, *self.lines], factors, corrections.moved(factors))

    def _catch_up(self) -> None:
        """Write how totals catch up with the results if some row's are far from the base."""
        self.lines.append("bool far = false, wide = false;")
        self.corrections.compare()
        self._flush()
        self.lines.append("const bool moved = tw::any_lane(far), shifted = tw::any_lane(wide);")
        self.corrections.catch_up()

    # -- rows --------------------------------------------------------------------------------------

    def _flush(self) -> None:
        """Write the loop over rows of the lines that wait."""
        if self.waiting:
            self.lines += over_rows([f"const int r = {self.chain.number};", *self.waiting])
            self.waiting.clear()

    def _ends(self, low: bool, high: bool) -> None:
        """Write where the keys of each row begin and end, relative to the lane's first key."""
        self.lines += [f"int from[{ROWS}];"] * low + [f"int to[{ROWS}];"] * high
        self.waiting += ["from[h] = low[r] - first;"] * low + ["to[h] = high[r] - first;"] * high
        if self.chain.chained.conditions and self.masked_value is None:
            self.lines.append(f"bool any[{ROWS}] = {{}};")

    def _join(self, k: int, r: ChainReduction) -> None:
        """Write how the tile's part joins state ``k``."""
        self.parts.meet(k, r)
        self.parts.join(k, r, self.corrections.corrected(k, r))
        self.arrays.append(f"next{k}")

    def _remember(self) -> None:
        """Write how the new states become the old ones of the next tile."""
        scalars = range(len(self.chain.chained.scalars))
        self.waiting += [f"state{k}[r] = next{k}[h];" for k in scalars]
        low, high = self.chain.ends
        if not self.chain.tracks:
            return
        if (self.masked or self.masked_value) and self.chain.chained.conditions:
            self.waiting += [f"any[h] |= (bool)tw::shuffle_xor((int)any[h], {n});" for n in (1, 2)]
            self.waiting.append("seen[r] |= any[h];")
        elif self.masked and (low or high):
            self.waiting.append(
                "seen[r] |= tw_most(low[r], tile) < tw_least(high[r], tile + TW_KEYS);"
            )
        else:
            self.waiting.append("seen[r] = true;")

    # -- elements ----------------------------------------------------------------------------------

    def _loop(self, level: int) -> None:
        held = self.chain.levels.held if level and not self.masked_value else self.masked_value
        near = ThreadScope("x", self._leaf(held), [], self.new, sums=self.sums)
        self._body(level, near)
        loop = self._elements(near.lines)
        if near.references:
            loop = self._near_or_far(level, near, held)
        self._flush()
        for k, r in self.chain.levels.scalars(level):
            self.lines += self.parts.declared(k, r)
        self.lines += loop

    def _body(self, level: int, scope: ThreadScope) -> None:
        """Write the lines of an element, to the lines of its scope."""
        inside = self._inside(scope, *self.chain.ends) if self.masked else None
        for k, r in self.chain.levels.scalars(level):
            scope.lines += self.parts.taken(k, r, scope, inside)
        scope.lines += self._stores(level, scope, inside)

    def _near_or_far(self, level: int, near: ThreadScope, held: Expression | None) -> list[str]:
        """Return the loop ``near``, and what comes in its place if references are far from zero.

        Either elements' differences are computed before, and then the same loop runs; or there is
        another loop.
        """
        measuring = [self.corrections.measuring(rest) for _, rest in near.references.values()]
        test = "shifted"
        if None in measuring or not self.chain.lagging:
            test = f"tw::any_lane(far{level})"
            known = zip(measuring, near.references, strict=True)
            far = (self.corrections.wide(c) if c else f"!(fabsf({t}) <= {NEAR}f)" for c, t in known)
            self.lines.append(f"bool far{level} = false;")
            self.waiting += [f"far{level} |= {one};" for one in far]
        head = f"__builtin_expect({test}, 0)"
        loop = self._elements(near.lines)

        def scope() -> ExactScope:
            return ExactScope("x", self._leaf(held), [], self.new, sums=self.sums)

        if shifted := self._shifted(level, near, scope()):
            elements, rows = shifted
            return [*CUDA.when(head, [*self._elements(elements), *rows]), *loop]
        exact = scope()
        exact.known = self.parts.elements(exact)
        self._body(level, exact)
        return CUDA.when(head, self._elements(exact.lines), loop)

    def _shifted(
        self, level: int, near: ThreadScope, exact: ExactScope
    ) -> tuple[list[str], list[str]] | None:
        """Return the lines by which elements are measured from zero; else None.

        That needs a single extreme that all elements are measured from.
        """
        levels, chained = self.chain.levels, self.chain.chained
        if len(self.parts.atoms) != 1 or level != levels.last:
            return None
        (k,) = self.parts.atoms
        weights = [weight for weight in self.chain.weights if levels.of(weight) == level]
        bodies = [*(r.element for _, r in levels.scalars(level)), *weights]
        return Shift(chained, self.parts, k, self.chain.score("e"), near, bodies).lines(exact)

    def _elements(self, body: Sequence[str]) -> list[str]:
        """Return a loop of the lines over all elements.

        Keys of some may be past the last: they read the last one's arrays.
        """
        last = keys_of(self.chain.chained).last
        key = f"tw_least(first + at, {last})" if self.masked or self.masked_value else "first + at"
        known = [
            "const int h = e / 2 % 2, at = e / 4 * 8 + e % 2;",
            f"const int r = {self.chain.number}, key = {key};",
        ]
        return CUDA.loop("e", self.chain.elements, [*known, *body], unroll=True)

    def _leaf(self, held: Expression | None) -> Leaf:
        """Return the leaf of an element; ``held`` is in the place of the score, or the key's part
        of it."""
        chained, score = self.chain.chained, self.chain.score("e")

        def leaf(node: Expression) -> str | None:
            if node == OWN or (node == held and node not in self.sums):
                return score
            if node == held:
                return _written(self.sums[node], score, self.of_row)
            return score if node == chained.score and held is None else self.chain.key_leaf(node)

        return leaf

    def _inside(self, scope: ThreadScope, low: bool, high: bool) -> str | None:
        """Write the test that the key counts for the row, and return its name; None if all do.

        It tests the row's first and last key and conditions.
        """
        tests = ["at >= from[h]"] * low + ["at < to[h]"] * high
        for condition in self.chain.chained.conditions:
            tests.append(scope.condition(condition))
        if not tests:
            return None
        scope.lines.append(f"const bool inside = {' && '.join(tests)};")
        if self.chain.chained.conditions:
            scope.lines.append("any[h] |= inside;")
        return "inside"

    def _stores(self, level: int, scope: ThreadScope, inside: str | None) -> list[str]:
        """Print how weights, and values for later loops, are stored."""
        lines, levels = [], self.chain.levels
        for weight, place in self.chain.weights.items():
            if levels.of(weight) == level:
                lines.append(f"{place('e')} = {selected(inside, scope.text(weight), '0.0f')};")
        if level == 0 and levels.held is not None and not self.masked_value:
            lines.append(f"{self.chain.score('e')} = {scope.text(levels.held)};")
        return lines


def _written(terms: Terms, own: str, of_row: str) -> str:
    """Return C text of a score, made of the key's own part and the row's part."""
    multiple = own if terms[0][0] == 1 else f"{own} * {terms[0][0]!r}f"
    return f"({multiple} + {of_row})" if len(terms) > 1 else multiple
