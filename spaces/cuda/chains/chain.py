"""The CUDA C++ of a chain on the fragments of one tile: scores become weights, states are updated.

A lane has elements of two rows, and four lanes share a row (``spaces.cuda.chains.lanes``). A state
that others read is reduced across them in each tile; one that only results read stays each lane's
own until the end.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property

from tilewright.spaces.cuda.chains.lanes import FINITE, IDENTITIES, across_lanes
from tilewright.spaces.cuda.chains.scopes import RowScope, ThreadScope, change
from tilewright.spaces.cuda.chains.tile_chain import TileChain, Written
from tilewright.spaces.cuda.reducers import NOWHERE, PLACES
from tilewright.spaces.derivation.chained.levels import Levels
from tilewright.spaces.derivation.chained.masking import masked_value
from tilewright.spaces.derivation.chained.reference import may_lag
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from tilewright.spaces.derivation.scopes import Leaf
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.tree import Expression, Negation, Read

RESCALES = ("always", "moved", "late")
"""Values of the decision ``rescale``: when sums and totals are corrected.

In every tile, in those in which some row's results moved, or only where they moved by more than
:data:`~spaces.cuda.chains.corrections.LATE` powers of two.
"""


@dataclass(frozen=True)
class FragmentChain:
    """The code of the chain of a slice of sixteen rows over one tile.

    ``chained`` has unscaled scores (:attr:`~spaces.derivation.chained.view.Chained.unscaled`), of
    which a lane has ``elements`` in a tile; ``score`` returns the C text of the one of an index.
    Rows of a lane over all its slices are ``rows``; row ``h`` of this slice is row ``r``, which is
    the C text ``number``. ``row_leaf`` writes leaves that differ from row to row, for row ``r``,
    and ``key_leaf`` those that differ from key to key, for row ``r`` and the key ``key``. ``ends``
    tells whether some row's keys begin after the first, or end before the last that a tile has.

    ``rescale`` is one of :data:`RESCALES`; if it is ``late``, totals are those of a ``base`` that
    stays behind the results until the end: corrections hold for any base. Results that come out the
    same for any base need none beside their states.
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
        """The scope of values that are the same along a row."""
        known = magnitudes(self.chained.program)
        return RowScope("g", self.row_leaf, index="r", magnitudes=known)

    @cached_property
    def weights(self) -> Mapping[Expression, Callable[[str], str]]:
        """The place of each weight: that of the scores, or an array ``weight0``, ..."""
        further = [weight for weight in self.levels.weights if weight != self.levels.in_place]
        found = {weight: _element(f"weight{i}") for i, weight in enumerate(further)}
        own = self.levels.in_place
        return found if own is None else {**found, own: self.score}

    def tile(self, masked: bool, between: Sequence[str] = ()) -> Written:
        """Return the lines for a tile, and how sums are corrected after it.

        The tile begins with the key ``tile``, the lane's first key is ``first``. Rows see all its
        keys, or only some if ``masked``. The lines ``between`` come between its loops.
        """
        return TileChain(self, masked, between=between).written()

    @cached_property
    def masked_value(self) -> Expression | None:
        """The value that hides a key if it is minus infinity; None if there is no such value.

        With it, tiles are written once for all rows, masked or not.
        """
        return masked_value(self.chained) if not self.tracks or self.chained.conditions else None

    def any_tile(
        self, within: Sequence[str], bounds: Sequence[str] = (), between: Sequence[str] = ()
    ) -> Written:
        """Return the lines for any tile, of a chain that has :attr:`masked_value`.

        ``within`` are C tests, if there are some: that the tile begins where all rows' keys have
        begun, and that it ends before any row's have ended. Where one does not hold, the lines
        ``bounds`` declare which keys a row sees.
        """
        tile = TileChain(self, False, self.masked_value, between)
        first, hidden, after = tile.hiding(apart=bool(within))
        lines = first
        for test, hide in zip(within or [""], hidden, strict=True):
            if hide:
                inner = [*bounds, *hide]
                lines += CUDA.when(f"!({test})", inner) if test else CUDA.block(*inner)
        return replace(after, lines=[*lines, *after.lines])

    def of_rows(self) -> list[str]:
        """Print the body of a loop over rows ``r``, before the first tile.

        It computes what is the same along a row, and sets its states to those of no keys. It must
        be written after all tiles are.
        """
        based = [f"base{k}[r] = state{k}[r];" for k in self.based]
        return [*self.row.lines, *self.no_states(), *based]

    def no_states(self) -> list[str]:
        """Print how the states of row ``r`` are set to those of no keys."""
        scalars = enumerate(self.chained.scalars)
        begun = [f"state{k}[r] = {IDENTITIES[r.reducer]};" for k, r in scalars]
        begun += [f"place{k}[r] = {NOWHERE};" for k in self.placed]
        return [*begun, "seen[r] = false;"]

    @cached_property
    def placed(self) -> tuple[int, ...]:
        """The numbers ``K`` of the states that have a place, in ``placeK[r]``."""
        scalars = enumerate(self.chained.scalars)
        return tuple(k for k, r in scalars if r.reducer in PLACES)

    def declared(self) -> list[str]:
        """Print the declarations of the arrays that :meth:`of_rows` sets."""
        names = [*self.row.declared, *(f"state{k}" for k in range(len(self.chained.scalars)))]
        names += [f"base{k}" for k in self.based]
        lines = [f"float {name}[{self.rows}];" for name in names]
        lines += [f"int place{k}[{self.rows}];" for k in self.placed]
        return [*lines, f"bool seen[{self.rows}];"]

    def joined_rows(self) -> list[str]:
        """Print the body of a loop over rows ``r``, after the last tile.

        It joins the states of lanes, and declares :attr:`last_factors`.
        """
        lines = self._caught_up() if self.based else []
        for k, r in enumerate(self.chained.scalars):
            if not self.is_shared(r):
                lines += across_lanes(r.reducer, f"state{k}[r]", f"place{k}[r]")
        if self.chained.conditions:
            lines += [f"seen[r] = tw::shuffle_xor((int)seen[r], {n}) | seen[r];" for n in (1, 2)]
        return lines if self.tracks else [*lines, "seen[r] = low[r] < high[r];"]

    @cached_property
    def tracks(self) -> bool:
        """True if tiles must tell which rows have seen a key.

        That is so if conditions leave keys out one by one, or if the correction of no keys may be
        NaN.
        """
        found = {r.correction for r in self.chained.reductions if r.correction}
        return bool(self.chained.conditions) or not all(map(self._is_finite, found))

    def _is_finite(self, correction: Scaling | Series) -> bool:
        """Return true if a correction falls with a maximum alone: that of no keys is then 0 or
        1."""
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
        """Print how totals are corrected from their base to the results."""
        lines: list[str] = []
        scopes = (self.states("base{}[r]", "l", lines), self.states("state{}[r]", "m", lines))
        for i, correction in enumerate(self.scalings):
            power = scopes[0].power_of(correction.function, change(correction.exponent, *scopes))
            lines.append(f"const float last{i} = {power};")
        for k, r in enumerate(self.chained.scalars):
            if isinstance(r.correction, Scaling):
                lines.append(f"state{k}[r] *= last{self.scalings.index(r.correction)};")
        return lines

    def states(self, text: str, prefix: str, lines: list[str]) -> ThreadScope:
        """Return a scope that reads states, as finite numbers until the row has ended.

        So an infinite extreme of a part makes no NaN of other parts.
        """
        return ThreadScope(prefix, self.state_leaf(text), lines, self.row)

    def state_leaf(
        self, text: str, based: str | None = None, forms: Mapping[str, str] = FINITE
    ) -> Leaf:
        """Return the leaf that writes states by their numbers: ``text`` with the number put in.

        ``based`` is the text of those that totals have a base of. Extremes are in one of two
        ``forms``.
        """
        known = {}
        for k, r in enumerate(self.chained.scalars):
            own = based if based and k in self.based else text
            known[r.name] = forms.get(r.reducer, "{}").format(own.format(k))
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
        """The states that others read, and behind which these may stay.

        Empty if all are up to date in every tile.
        """
        if self.rescale != "late" or not can_be_late(self.chained):
            return ()
        scalars = enumerate(self.chained.scalars)
        return tuple(k for k, r in scalars if r.name in self._read)

    @cached_property
    def free(self) -> tuple[int, ...]:
        """The states that lag behind themselves, and need no base."""
        return tuple(k for k in self.lagging if k not in self.based)

    def is_shared(self, r: ChainReduction) -> bool:
        """Return true if all four lanes of a row must know a state in each tile."""
        return r.name in self._read or isinstance(r.correction, Series)

    @cached_property
    def _read(self) -> frozenset[str]:
        """States that anything but results reads."""
        return frozenset(read.name for body in self._bodies() for read in body.reads)

    def _bodies(self) -> Iterator[Expression]:
        yield from self.levels.weights
        for r in self.chained.reductions:
            if r.name in {scalar.name for scalar in self.chained.scalars}:
                yield r.element
            yield from r.corrected_by


def can_be_late(chained: Chained) -> bool:
    """Return true if totals may stay behind results.

    They are then corrected by factors, and the states in these are not corrected themselves.
    """
    corrections = [r.correction for r in chained.reductions if r.correction]
    read = {name for c in corrections if isinstance(c, Scaling) for name in _names(c.exponent)}
    plain = {r.name for r in chained.scalars if r.correction is None}
    return bool(corrections) and all(isinstance(c, Scaling) for c in corrections) and read <= plain


def _names(expression: Expression) -> set[str]:
    return {read.name for read in expression.reads}


def _element(name: str) -> Callable[[str], str]:
    return lambda e: f"{name}[{e}]"
