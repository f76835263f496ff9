"""The contribution of a tile to the states of its rows: lanes reduce elements to parts.

A lane has two parts of each row, of every second block of eight keys. A part of a reduction to a
place (``argmax`` and ``argmin``) is the best value and its key; the state of such a reduction is
that value, and ``placeK[r]`` the key, for the ``K``-th of all scalars.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from tilewright.spaces.cuda.chains.lanes import (
    EXTREMES,
    IDENTITIES,
    ROWS,
    across_lanes,
    selected,
)
from tilewright.spaces.cuda.chains.scopes import RowScope, ThreadScope
from tilewright.spaces.cuda.reducers import NOWHERE, PLACES, joined, taken
from tilewright.spaces.derivation.algebra import ZERO
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction
from tilewright.spaces.language.tree import Expression

if TYPE_CHECKING:
    from tilewright.spaces.cuda.chains.chain import FragmentChain


@dataclass
class Parts:
    """The parts of one tile of a chain; the scope ``new`` reads the states that rows have by
    then."""

    chain: FragmentChain
    new: RowScope
    multiples: dict[int, tuple[float, Expression]] = field(default_factory=dict)
    atoms: dict[int, Expression] = field(default_factory=dict)

    def declared(self, k: int, r: ChainReduction) -> list[str]:
        """Print the declarations of the parts, of no elements."""
        begun = ", ".join([IDENTITIES[r.reducer]] * 2 * ROWS)
        lines = [f"float part{k}[{2 * ROWS}] = {{{begun}}};"]
        if r.reducer in PLACES:
            nowhere = ", ".join([NOWHERE] * 2 * ROWS)
            lines.append(f"int found{k}[{2 * ROWS}] = {{{nowhere}}};")
        return lines

    def taken(self, k: int, r: ChainReduction, scope: ThreadScope, inside: str | None) -> list[str]:
        """Print how an element joins its part, if it is ``inside``."""
        value, part = self._element(k, r, scope), f"part{k}[e / 2 % 4]"
        if r.reducer in PLACES:
            only = f"if ({inside}) " if inside else ""
            return [f"{only}tw_{r.reducer}({part}, found{k}[e / 2 % 4], {value}, first + at);"]
        value = selected(inside, value, IDENTITIES[r.reducer])
        return [f"{part} = {joined(r.reducer, part, value)};"]

    def meet(self, k: int, r: ChainReduction) -> None:
        """Write how both parts of a row ``h`` become one.

        Parts of all lanes do so, too, where all must know the state.
        """
        lines = self.new.lines
        part, other = f"part{k}[h]", f"part{k}[h + {ROWS}]"
        if r.reducer in PLACES:
            lines.append(f"tw_{r.reducer}({part}, found{k}[h], {other}, found{k}[h + {ROWS}]);")
            return
        lines.append(f"{part} = {joined(r.reducer, part, other)};")
        scale, rest = self.multiples[k]
        if scale != 1:
            lines.append(f"{part} *= {scale!r}f;")
        if rest != ZERO:
            lines.append(f"{part} += {self.new.text(rest)};")
        if self.chain.is_shared(r):
            lines += across_lanes(r.reducer, part)

    def join(self, k: int, r: ChainReduction, before: Sequence[str]) -> None:
        """Write how the part joins the state before it, a product of C texts, as ``nextK[h]``."""
        new, part = f"next{k}[h]", f"part{k}[h]"
        if r.reducer in PLACES:
            best = f"tw_{r.reducer}({new}, place{k}[r], {part}, found{k}[h]);"
            self.new.lines += [f"{new} = {' * '.join(before)};", best]
        else:
            self.new.lines.append(f"{new} = {taken(r.reducer, part, before)};")

    def elements(self, scope: ThreadScope) -> dict[Expression, str]:
        """Return C text of each element of an extreme so far, as the extreme was computed from it.

        Elements that the scope holds itself are left out: it knows them already.
        """
        found = {}
        for k, (scale, rest) in self.multiples.items():
            atom, element = self.atoms.get(k), self.chain.chained.scalars[k].element
            if atom is not None and scope.leaf(element) is None:
                text = scope.text(atom) + (f" * {scale!r}f" if scale != 1 else "")
                text += f" + {scope.text(rest)}" if rest != ZERO else ""
                found[element] = f"({text})"
        return found

    def _element(self, k: int, r: ChainReduction, scope: ThreadScope) -> str:
        """Return C text of what joins part ``k`` of each element.

        For an extreme of multiples, the factor is left out here and multiplied once a row.
        """
        self.multiples[k] = 1.0, ZERO
        if r.reducer in EXTREMES:
            own, rest = scope.apart(scope.scaled_terms(r.element))
            if len(own) == 1 and own[0][0] > 0:
                ((scale, atom),) = own
                self.multiples[k], self.atoms[k] = (scale, rest), atom
                return scope.text(atom)
        return scope.text(r.element)
