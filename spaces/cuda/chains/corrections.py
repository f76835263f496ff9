"""The CUDA C++ of corrections: the factors of states and sums where a tile's results differ.

All of it is written into the loop over rows ``h`` of a slice. Where totals may stay behind results,
each row has a base that they were corrected to; they catch up with the results only where those of
some row are far from it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.spaces.cuda.chains.lanes import REFERENCES, ROWS
from tilewright.spaces.cuda.chains.scopes import (
    NEAR,
    POWERS,
    RowScope,
    Terms,
    change,
    multiplied,
)
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling, Series
from tilewright.spaces.derivation.scopes import series

if TYPE_CHECKING:
    from tilewright.spaces.cuda.chains.chain import FragmentChain

LATE = 8.0
"""Powers of two by which weights may be larger before totals catch up with results.

That is within the range of float16.
"""


@dataclass
class Corrections:
    """The corrections of one tile of ``chain``.

    The scope ``old`` reads the states before the tile, ``found`` those after it, and ``raw`` these
    too, but with infinities of no elements. ``factors`` are the arrays of factors, and ``arrays``
    all others that are written on the way.
    """

    chain: FragmentChain
    old: RowScope
    found: RowScope
    raw: RowScope
    arrays: list[str]
    factors: dict[Scaling, str] = field(default_factory=dict)

    def corrected(self, k: int, r: ChainReduction) -> Sequence[str]:
        """Return C texts whose product is state ``k`` before the tile, under the new results."""
        state = f"state{k}[r]"
        match r.correction:
            case Scaling():
                return state, f"{self.factor(r.correction)}[h]"
            case Series():
                moved = " + ".join([state, *series(r.correction, self.old, self.found)])
                return (f"(seen[r] ? {moved} : {state})",)
        return (state,)

    def factor(self, correction: Scaling) -> str:
        """Return the array of a correction's factors."""
        if correction not in self.factors:
            name = f"factor{len(self.factors)}"
            moved = change(correction.exponent, self.old, self.found)
            power = self.found.power_of(correction.function, moved)
            known = f"seen[r] ? {power} : 1.0f" if self.chain.tracks else power
            self.found.lines.append(f"{name}[h] = {known};")
            self.factors[correction] = name
        return self.factors[correction]

    def compare(self) -> None:
        """Write by how many powers of two results are from the base.

        Also write whether any is ``far`` from it, and whether any is ``wide`` of zero: the base is,
        too, unless results are far from it.
        """
        for i, correction in enumerate(self.chain.scalings):
            moved = change(correction.exponent, self.old, self.found)
            scale = POWERS[correction.function]
            self.found.lines += [
                f"change{i}[h] = ({moved}) * {scale!r}f;",
                f"far |= !(change{i}[h] >= -{LATE}f && change{i}[h] <= {LATE}f);",
            ]
            self.found.lines.append(f"wide |= {self.wide(correction, NEAR - LATE)};")
            self.arrays.append(f"change{i}")
            self.factors[correction] = f"factor{i}"
        for k in self.chain.free:
            reducer = self.chain.chained.scalars[k].reducer
            reference = REFERENCES.get(reducer, "{}").format(f"next{k}[h]")
            self.found.lines.append(f"reference{k}[h] = {reference};")
            self.arrays.append(f"reference{k}")

    def wide(self, correction: Scaling, near: float = NEAR) -> str:
        """Return a C condition that an exponent of finite states is far from zero.

        That is by more than ``near`` powers of two.
        """
        size = f"fabsf({self.raw.text(correction.exponent)})"
        states = f"fabsf({self.raw.text(multiplied(correction.exponent, self.raw))})"
        limit = near / POWERS[correction.function]
        return f"!({size} <= {limit!r}f) && {states} < TW_INFINITY"

    def measuring(self, terms: Terms) -> Scaling | None:
        """Return the correction whose exponent is a sum of these terms, in powers of two; else
        None."""
        unwritten = self.chain.states("next{}[h]", "t", [])
        for correction in self.chain.scalings:
            own = unwritten.scaled_terms(correction.exponent)
            if [(POWERS[correction.function] * c, atom) for c, atom in own] == terms:
                return correction
        return None

    def catch_up(self) -> None:
        """Write the factors, and the base that totals have from here on.

        The base is the results of all rows if ``moved`` holds, or else the one they had.
        """
        for i in range(len(self.chain.scalings)):
            self.found.lines.append(f"factor{i}[h] = moved ? tw::exp2_approx(change{i}[h]) : 1.0f;")
        for k in self.chain.free:
            self.found.lines.append(f"if (!moved) next{k}[h] = reference{k}[h] = state{k}[r];")
        for k in self.chain.based:
            self.found.lines += [
                f"chosen{k}[h] = moved ? next{k}[h] : base{k}[r];",
                f"base{k}[r] = chosen{k}[h];",
            ]
            self.arrays.append(f"chosen{k}")

    def moved(self, factors: Sequence[str | None]) -> str | None:
        """Return the C condition that sums must be multiplied by factors; None if they always
        are."""
        names = [name for name in dict.fromkeys(factors) if name]
        if self.chain.lagging:
            return "moved"
        if self.chain.rescale == "always" or not names:
            return None
        changed = " || ".join(f"{name}[{h}] != 1.0f" for name in names for h in range(ROWS))
        return f"tw::any_lane({changed})"
