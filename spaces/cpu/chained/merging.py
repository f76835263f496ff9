"""The C that merges rows whose keys were split into parts.

States of each part are corrected to those of all keys, as states of a tile are to new ones, and
reduced; sums are corrected and added. The order of the parts makes no difference beyond rounding.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cpu.abi import LINE
from tilewright.spaces.cpu.chained import places
from tilewright.spaces.cpu.chained.blocks import Blocks
from tilewright.spaces.cpu.chained.chain import begun_states, corrected
from tilewright.spaces.cpu.rows.scopes import VectorScope
from tilewright.spaces.cpu.vectors.reducers import EXTREMES, factor, identity, joined
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.chains.chain_reduction import ChainReduction, Scaling
from tilewright.spaces.derivation.scopes import Leaf, Scope
from tilewright.spaces.kernels.text import C
from tilewright.spaces.language.magnitude import magnitudes


@dataclass(frozen=True)
class Merging:
    """Keeps and merges the parts of rows.

    A row of a part has its states, a flag that tells whether it has seen a key, indices of keys
    that were found, and its sums, in this order. Rows of all products of the first part come first.
    ``row_leaf`` gives the C text of values that differ from row to row.
    """

    chained: Chained
    blocks: Blocks
    splits: int
    row_leaf: Leaf

    @property
    def floats(self) -> int:
        """Floats of all rows of all parts."""
        return self.splits * self._rows * self._stride

    @property
    def _rows(self) -> int:
        return self.chained.batches * self.chained.row_count

    @property
    def _head(self) -> int:
        """Floats before the sums: states, the flag, and indices of keys, in whole cache lines."""
        return round_up(2 * len(self.chained.scalars) + 1, LINE)

    @property
    def _stride(self) -> int:
        return self._head + len(self.chained.weighings) * self.blocks.sum_stride

    def keep(self) -> list[str]:
        """Return the lines that keep row ``r`` of the part in the C variable ``part``."""
        scalars = range(len(self.chained.scalars))
        return [
            f"float *kept = parts + {self._place('part', 'first_row + r')};",
            *(f"kept[{k}] = state{k}[r];" for k in scalars),
            f"kept[{len(scalars)}] = seen[r];",
            *(f"{self._kept_place(k)} = place{k}[r];" for k in scalars if self._finds(k)),
            *(self._kept_sums(number) for number, _ in enumerate(self.chained.weighings)),
        ]

    def merge(self) -> list[str]:
        """Return the lines that merge all parts of row ``r`` into its states and sums."""
        lines = ["seen[r] = 0;"]
        row = VectorScope("g", self.row_leaf, lines, magnitudes=magnitudes(self.chained.program))
        new = VectorScope("n", begun_states(self.chained, "t"), lines, row)
        for k, r in enumerate(self.chained.scalars):
            lines.append(f"vf t{k} = {identity(r.reducer)};")
            lines += [f"place{k}[r] = {places.NOWHERE};"] * self._finds(k)
            lines += self._over_parts(partial(self._state, k, r, new))
            lines += [f"state{k}[r] = t{k}[0];"] * (not self._finds(k))
        for number, weighing in enumerate(self.chained.weighings):
            sums = f"sums{number} + r * sum_stride"
            end = f"e < {self.blocks.sum_stride}; e++"
            lines.append(f"for (long e = 0; {end}) ({sums})[e] = 0.0f;")
            lines += self._over_parts(partial(self._sum, number, weighing.reduction, new))
        return lines

    def _finds(self, k: int) -> bool:
        return self.chained.scalars[k].reducer in EXTREMES

    def _kept_place(self, k: int) -> str:
        return f"kept[{len(self.chained.scalars) + 1 + k}]"

    def _state(self, k: int, r: ChainReduction, new: Scope, old: Scope) -> list[str]:
        if self._finds(k):
            return places.later(k, r.reducer, f"s{k}", f"t{k}", self._kept_place(k))
        value = corrected(r, f"s{k}", lambda c: factor(c, new, old), old, new)
        return [f"t{k} = {joined(r.reducer, f't{k}', value)};"]

    def _sum(self, number: int, r: ChainReduction, new: Scope, old: Scope) -> list[str]:
        def by(correction: Scaling) -> str:
            return "factor"

        known = r.correction if isinstance(r.correction, Scaling) else None
        lines = [f"const vf factor = {factor(known, new, old)};"] if known else []
        value = f"tw_load_float32({self._sums_of_part(number)})"
        sums = f"sums{number} + r * sum_stride + e"
        added = f"tw_load_float32({sums}) + {corrected(r, value, by, old, new)}"
        return [*lines, f"{self._columns} tw_store_float32({sums}, {added});"]

    def _over_parts(self, body_of: Callable[[Scope], list[str]]) -> list[str]:
        """Return a loop over the parts in which the row has seen a key."""
        scalars = range(len(self.chained.scalars))
        body: list[str] = [
            f"const float *kept = parts + {self._place('part', 'first_row + r')};",
            f"if (kept[{len(scalars)}] == 0.0f) continue;",
            "seen[r] = 1;",
            *(f"const vf s{k} = tw_set(kept[{k}]);" for k in scalars),
        ]
        row = VectorScope("h", self.row_leaf, body, magnitudes=magnitudes(self.chained.program))
        old = VectorScope("o", begun_states(self.chained, "s"), body, row)
        body += body_of(old)
        return C.loop("part", self.splits, body)

    def _place(self, part: str, row: str) -> str:
        number = f"{part} * {self._rows}L + batch * {self.chained.row_count}L + {row}"
        return f"({number}) * {self._stride}L"

    def _kept_sums(self, number: int) -> str:
        kept, sums = self._sums_of_part(number), f"sums{number} + r * sum_stride + e"
        return f"{self._columns} tw_store_float32({kept}, tw_load_float32({sums}));"

    def _sums_of_part(self, number: int) -> str:
        return f"kept + {self._head + number * self.blocks.sum_stride} + e"

    @property
    def _columns(self) -> str:
        return f"for (long e = 0; e < {self.chained.width.extent}; e += {self.blocks.lanes})"
