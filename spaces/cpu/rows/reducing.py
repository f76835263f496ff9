"""The C of one pass over a row: tiles update the states, then the lanes' states are joined.

Both steps combine states of parts of the row, and both use the same corrections.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

from tilewright.spaces.cpu.rows.columns import Vector
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.vectors import long_sums
from tilewright.spaces.cpu.vectors.reducers import (
    EXTREMES,
    begun,
    ended,
    factor,
    factors,
    identity,
    joined_operand,
    scaled_by,
    sum_of_products,
)
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from tilewright.spaces.derivation.rows.passes import Pass
from tilewright.spaces.derivation.scopes import Leaf, Scope, combined, series, states_of
from tilewright.spaces.language.tree import Expression, Read

BEFORE = {"argmax": "tw_above", "argmin": "tw_below"}
"""The C functions that tell where one value replaces another, by reducer."""


@dataclass(frozen=True)
class Reducing:
    """One pass over a row.

    ``tag`` makes its variables unique. ``vector_scope`` makes the scope of one vector within a
    tile. ``also`` returns further lines of a tile, given its vectors and scopes. ``ranks`` has, for
    each ``argmax`` and ``argmin``, the steps of its places along the columns.

    If ``across``, lanes are parts of one row and are joined at the end; only the first ``short`` of
    them have any columns, if that is not None. Otherwise each lane is a row of its own. States take
    in ``turns`` tiles; if that is many, sums are added up in blocks.
    """

    tag: str
    pass_: Pass
    short: int | None
    across: bool
    turns: int
    row: Scope
    vector_scope: Callable[[int, Vector, Scope], Scope]
    also: Callable[[Sequence[Vector], Sequence[Scope]], list[str]]
    ranks: dict[str, tuple[int, ...]]

    def declarations(self) -> list[str]:
        """Return the lines that declare the states, with their reducers' identities.

        States stay unset if there are corrections: these use results, so that a first tile sets the
        states.
        """
        corrects = any(r.correction for r in self.pass_)
        found = []
        for i, r in enumerate(self.pass_):
            begun = corrects and r.name not in self.ranks  # by the first tile
            start = "" if begun else f" = {identity(r.reducer)}"
            found.append(f"vf {self._name('s', i)}{start};")
            if r.name in self.ranks:
                found.append(f"vi {self._name('i', i)} = {{0}};")
        return found + self._blocks_declared()

    # -- blocks of long sums -----------------------------------------------------------------

    @property
    def _long(self) -> list[int]:
        """The numbers of the states that are added up in blocks."""
        sums = [i for i, r in enumerate(self.pass_) if r.reducer == "sum"]
        return sums if self.turns > long_sums.BLOCK else []

    @property
    def _scaled(self) -> dict[int, Expression]:
        """The states' expression in the exponent of each scaled sum that is added up in blocks.

        Earlier blocks are scaled where a block ends; the variable ``h`` holds the value that this
        expression had when they were scaled last.
        """
        known = VectorScope("", self._raw("s"))
        corrections = ((i, self.pass_[i].correction) for i in self._long)
        return {i: states_of(c.exponent, known) for i, c in corrections if isinstance(c, Scaling)}

    @property
    def _long_states(self) -> list[str]:
        return [self._name("s", i) for i in self._long]

    @property
    def _turn(self) -> str:
        return f"turn{self.tag}"

    def _blocks_declared(self) -> list[str]:
        if not self._long:
            return []
        exponents = [f"vf {self._name('h', i)};" for i in self._scaled]
        return [*exponents, *long_sums.declared(self._long_states, self._turn)]

    def _block_ends(self, now: Scope) -> list[str]:
        """Return the lines at the end of a tile; every so many tiles, they end a block."""
        if not self._long:
            return []
        return long_sums.turn_ends(
            self._long_states, self._turn, long_sums.BLOCK, self._blocks_scaled(now)
        )

    def _blocks_scaled(self, now: Scope) -> list[str]:
        """Return the lines that scale earlier blocks to the current results."""
        lines = []
        for i, exponent in self._scaled.items():
            factor, last, moved = self._name("q", i), self._name("h", i), now.text(exponent)
            names = long_sums.parts(self._name("s", i))
            lines += [
                f"const vf {factor} = {self._since(i, now)};",
                *(f"{name} *= {factor};" for name in names),
                f"{last} = {moved};",
            ]
        return lines

    def _since(self, i: int, now: Scope) -> str:
        """Return the factor that scales earlier blocks to the current results."""
        correction = self.pass_[i].correction
        assert isinstance(correction, Scaling)
        return scaled_by(correction, now, f"{now.text(self._scaled[i])} - {self._name('h', i)}")

    # -- results -----------------------------------------------------------------------------

    def results(self) -> dict[str, str]:
        """Add the lines that end the pass to the row's, and return the C text of each reduction's
        result."""
        parts = self._scope("l", "s")
        if self._long:
            self.row.lines += self._blocks_scaled(parts)
            self.row.lines += long_sums.joined(self._long_states)
        final = self._scope("f", "t")
        plain = VectorScope(f"u{self.tag}_", self._raw("t"), self.row.lines, self.row)
        for i, r in enumerate(self.pass_):
            end = ended(r.correction, plain)
            lines = (
                self._together(i, r, parts, final, end) if self.across else self._each(i, r, end)
            )
            self.row.lines += lines
        return {
            r.name: self._name("t", i) if r.name in self.ranks else plain.text(r.result)
            for i, r in enumerate(self.pass_)
        }

    def place(self, name: str) -> str:
        """Return the C variable of the place that an ``argmax`` or ``argmin`` found: a number, or a
        vector."""
        return self._name("w", [r.name for r in self.pass_].index(name))

    # -- tiles -------------------------------------------------------------------------------

    def tile(self, vectors: Sequence[Vector], first: bool) -> list[str]:
        """Return the lines that take the elements of some vectors into the states; the ``first``
        ones set them."""
        lines: list[str] = []
        old = self._scope("o", "s", lines, in_blocks=not first)
        new = self._scope("n", "t", lines, in_blocks=not first)
        scopes = [self.vector_scope(u, vector, new) for u, vector in enumerate(vectors)]
        for i, r in enumerate(self.pass_):
            if r.name in self.ranks:
                values = self._values(r, scopes, vectors)
                lines += self._places(i, r, values, vectors)
                continue
            before = None if first else self._corrected(r, self._name("s", i), old, new)
            total = self._total(r, before, scopes, vectors)
            lines.append(f"const vf {self._name('t', i)} = {total};")
        lines += self.also(vectors, scopes)
        kept = [i for i, r in enumerate(self.pass_) if r.name not in self.ranks]
        lines += [f"{self._name('s', i)} = {self._name('t', i)};" for i in kept]
        if first:
            lines += [f"{self._name('h', i)} = {new.text(e)};" for i, e in self._scaled.items()]
        return lines + self._block_ends(new)

    def _values(
        self, r: ChainReduction, scopes: Sequence[Scope], vectors: Sequence[Vector]
    ) -> list[str]:
        pairs = zip(scopes, vectors, strict=True)
        return [self._inside(scope.text(r.element), vector, r) for scope, vector in pairs]

    def _total(
        self,
        r: ChainReduction,
        before: str | None,
        scopes: Sequence[Scope],
        vectors: Sequence[Vector],
    ) -> str:
        """Return the elements of some vectors, reduced, and joined to the state ``before`` them if
        given."""
        found = factors(r.reducer, r.element)
        whole = all(vector.left is None for vector in vectors) or not self.across
        if found and whole and before and len(scopes) == 1:
            left, right = map(scopes[0].text, found)
            return f"tw_fma({left}, {right}, {before})"
        if found and whole:
            total = sum_of_products(scopes, *found)
        else:
            values = self._values(r, scopes, vectors)
            total = combined(values, partial(joined_operand, r.reducer))
        return joined_operand(r.reducer, before, total) if before else total

    def _inside(self, value: str, vector: Vector, r: ChainReduction) -> str:
        """Return a value with the reducer's identity in lanes past the row's end."""
        if vector.left is None or not self.across:
            return value
        return f"tw_select(tw_first({vector.left}), {value}, {identity(r.reducer)})"

    def _places(
        self, i: int, r: ChainReduction, values: Sequence[str], vectors: Sequence[Vector]
    ) -> list[str]:
        """Return the lines that keep the best value of each lane, the first of equal ones, and its
        place."""
        lines: list[str] = []
        state, where = self._name("s", i), self._name("i", i)
        for u, (value, vector) in enumerate(zip(values, vectors, strict=True)):
            steps = self.ranks[r.name]
            rank = f"(vi){{0}} + (int)({vector.offset(steps)})"
            if self.across:
                rank = f"tw_ramp(0) * {steps[-1]} + (int)({vector.offset(steps)})"
            found, better = (f"{letter}{self.tag}_{i}_{u}" for letter in "vb")
            lines += [
                f"const vf {found} = {value};",
                f"const vi {better} = {BEFORE[r.reducer]}({found}, {state});",
                f"{state} = tw_select({better}, {found}, {state});",
                f"{where} = tw_pick({better}, {rank}, {where});",
            ]
        return lines

    # -- joining -----------------------------------------------------------------------------

    def _each(self, i: int, r: ChainReduction, end: str) -> list[str]:
        """Return the lines that end the states of lanes that are rows of their own."""
        together, state = self._name("t", i), self._name("s", i)
        if r.name not in self.ranks:
            return [f"const vf {together} = {state}{end};"]
        place = self._name("w", i)
        return [
            f"const vi {place} = {self._name('i', i)};",
            f"const vf {together} = tw_numbers({place});",
        ]

    def _together(
        self, i: int, r: ChainReduction, parts: Scope, final: Scope, end: str
    ) -> list[str]:
        """Return the lines that reduce all lanes of a state to one value, which every lane gets."""
        value = self._corrected(r, self._name("s", i), parts, final)
        if self.short is not None:
            value = f"tw_select(tw_first({self.short}), {value}, {identity(r.reducer)})"
        together = self._name("t", i)
        if r.name not in self.ranks:
            return [f"const vf {together} = tw_set(tw_across_{r.reducer}({value})){end};"]
        best, place = self._name("a", i), self._name("w", i)
        states = f"{self._name('s', i)}, {best}[0], {self._name('i', i)}"
        return [
            f"const vf {best} = tw_set(tw_across_{EXTREMES[r.reducer]}({value}));",
            f"const long {place} = tw_where({states});",
            f"const vf {together} = tw_set((float){place});",
        ]

    def _corrected(self, r: ChainReduction, state: str, old: Scope, new: Scope) -> str:
        """Return a state corrected from ``old`` results to ``new`` ones."""
        match r.correction:
            case Scaling():
                return f"{state} * {factor(r.correction, new, old)}"
            case Series():
                return f"({' + '.join([state, *series(r.correction, old, new)])})"
        return state

    def _scope(
        self, prefix: str, states: str, lines: list[str] | None = None, in_blocks: bool = False
    ) -> Scope:
        """Return a scope of the results that the states ``states`` give, with earlier blocks if
        ``in_blocks``.

        Results are finite until the row has ended, so that an infinite extreme of one part makes no
        NaN of the other parts.
        """
        raw = self._raw(states)
        number = {r.state: i for i, r in enumerate(self.pass_)}

        def leaf(node: Expression) -> str | None:
            found = raw(node)
            if found is None or node not in number:
                return found
            i = number[node]
            if in_blocks and i in self._long:
                before = " - ".join(long_sums.parts(self._name("s", i)))
                scaled = f" * {self._since(i, scope)}" if i in self._scaled else ""
                return f"({before}){scaled} + {found}"
            return begun(self.pass_[i].reducer, found)

        into = self.row.lines if lines is None else lines
        scope = VectorScope(f"{prefix}{self.tag}_", leaf, into, self.row)
        return scope

    def _raw(self, states: str) -> Leaf:
        own = {r.name: self._name(states, i) for i, r in enumerate(self.pass_)}
        return lambda node: own.get(node.name) if isinstance(node, Read) else None

    def _name(self, kind: str, i: int) -> str:
        return f"{kind}{self.tag}_{i}"
