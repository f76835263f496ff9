"""The CUDA C++ of the outputs of a row, from its states and sums after all keys."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import gcd

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.chains.chain import FragmentChain
from tilewright.spaces.cuda.chains.lanes import REFERENCES
from tilewright.spaces.cuda.chains.scopes import ThreadScope, change
from tilewright.spaces.derivation.chained.rows_and_keys import RowsAndKeys
from tilewright.spaces.derivation.chained.view import Chained, ChainedOutput
from tilewright.spaces.derivation.chains.chain_reduction import Scaling
from tilewright.spaces.derivation.products.splitting import Part
from tilewright.spaces.derivation.scopes import Leaf
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Expression, Read


@dataclass(frozen=True)
class Finish:
    """The outputs of row ``r`` of a lane, if that is the row ``row`` of a product.

    ``access`` knows that row. ``sums`` are the C texts of element ``e`` of pair ``j`` of each
    weighing's sums; there are ``pairs`` of them, whose first ``column`` is C text.
    """

    chain: FragmentChain
    access: Access[Chained]
    sums: Sequence[str]
    pairs: int
    column: str = "column0 + j * 8"

    def lines(self) -> list[str]:
        """Print all outputs of a row.

        A reduction over no keys is its reducer's identity, whatever the program makes of that; its
        place is the first.
        """
        lines: list[str] = []
        around = self.chain.row
        scalars = self.chain.chained.scalars
        raw = {r.name: f"state{k}[r]" for k, r in enumerate(scalars)}
        raw |= {scalars[k].name: f"(float)place{k}[r]" for k in self.chain.placed}
        lines += self._settled()
        states = ThreadScope("u", _known(raw), lines, around)
        for k, r in enumerate(scalars):
            none = "0.0f" if k in self.chain.placed else states.text(r.state)
            value = f"seen[r] ? {states.text(r.result)} : {none}"
            lines.append(f"const float result{k} = {value};")
        results = {r.name: f"result{k}" for k, r in enumerate(scalars)}
        row = ThreadScope("w", _known(results), lines, states)
        for output in self.chain.chained.outputs:
            if not output.wide:
                lines += self._row_output(output, row.text(output.value))
        if any(output.wide for output in self.chain.chained.outputs):
            lines += self._wide_outputs(row, states)
        return lines

    def _settled(self) -> list[str]:
        """Print how totals are corrected from the references of elements to results.

        The two differ where no element was better than nothing.
        """
        lines: list[str] = []
        for i, scaling in enumerate(self.chain.scalings):
            before = self._states(f"p{i}_", REFERENCES, lines)
            after = self._states(f"t{i}_", {}, lines)
            power = after.power_of(scaling.function, change(scaling.exponent, before, after))
            lines.append(f"const float settled{i} = {power};")
            rescaled = self._times(scaling, f"settled{i}")
            lines += CUDA.when(f"seen[r] && settled{i} != 1.0f", rescaled)
        return lines

    def _states(self, prefix: str, forms: Mapping[str, str], lines: list[str]) -> ThreadScope:
        leaf = self.chain.state_leaf("state{}[r]", forms=forms)
        return ThreadScope(prefix, leaf, lines, self.chain.row)

    def _times(self, scaling: Scaling, factor: str) -> list[str]:
        """Print how the totals of a correction are multiplied by ``factor``."""
        scalars, weighings = enumerate(self.chain.chained.scalars), self.chain.chained.weighings
        lines = [f"state{k}[r] *= {factor};" for k, r in scalars if r.correction == scaling]
        for text, weighing in zip(self.sums, weighings, strict=True):
            if weighing.reduction.correction == scaling:
                pair = CUDA.loop("e", 2, f"{text} *= {factor};", unroll=True)
                lines += CUDA.loop("j", self.pairs, pair, unroll=True, brief=True)
        return lines

    def _row_output(self, output: ChainedOutput, value: str) -> list[str]:
        kind = C_TYPES[output.array.dtype]
        place = _place(self.access, output, self.chain.chained.width, "0")
        stored = f"tw::store_global({place}, tw::from_float<{kind}>({value}));"
        return [f"if (is_first) {stored}"]

    def _wide_outputs(self, row: ThreadScope, states: ThreadScope) -> list[str]:
        body: list[str] = []
        width = self.chain.chained.width
        names = {width.name: "column"}
        weighings = self.chain.chained.weighings
        sums = {w.reduction.name: text for w, text in zip(weighings, self.sums, strict=True)}
        raw = ThreadScope("y", _known(sums), body, states)
        results = {}
        for n, weighing in enumerate(weighings):
            value = raw.text(weighing.reduction.result)
            body.append(f"const float sum{n} = seen[r] ? {value} : 0.0f;")
            results[weighing.reduction.name] = f"sum{n}"
        wide = _known(results)
        leaf = self.access.knowing(names).leaf
        scope = ThreadScope("z", lambda node: wide(node) or self._along(node, leaf), body, row)
        outputs = [output for output in self.chain.chained.outputs if output.wide]
        stores = []
        for n, output in enumerate(outputs):
            kind = C_TYPES[output.array.dtype]
            body.append(f"pair{n}[e] = tw::from_float<{kind}>({scope.text(output.value)});")
            stores += self._store_pair(output, f"pair{n}")
        declared = [f"{C_TYPES[o.array.dtype]} pair{n}[2];" for n, o in enumerate(outputs)]
        last = f"tw_least({self.column} + e, {width.extent - 1})"
        pair = CUDA.loop("e", 2, [f"const int column = {last};", *body], unroll=True)
        return CUDA.loop("j", self.pairs, [*declared, *pair, *stores], unroll=True)

    def _along(self, node: Expression, leaf: Leaf) -> str | None:
        """Return C text of a leaf that differs along the width; None for others."""
        width = self.chain.chained.width.name
        return leaf(node) if width in self.chain.chained.indexing.reads(node) else None

    def _store_pair(self, output: ChainedOutput, pair: str) -> list[str]:
        return store_pair(self.access, output, self.chain.chained.width, self.column, pair)


def store_pair(
    access: Access[RowsAndKeys], output: ChainedOutput, width: Part, column: str, pair: str
) -> list[str]:
    """Print how an array of two elements is stored to the columns from ``column`` on."""
    step = output.offset.coefficient(width.name)
    others = output.offset.without([width.name]).divisor
    if step == 1 and gcd(2, width.extent, others) == 2:
        at = _place(access, output, width, column)
        return [f"if ({column} < {width.extent}) tw::store_global<2>({at}, {pair});"]
    lines = []
    for e in range(2):
        at = _place(access, output, width, f"{column} + {e}")
        test = f"{column} + {e} < {width.extent}"
        lines.append(f"if ({test}) tw::store_global({at}, {pair}[{e}]);")
    return lines


def _place(access: Access[RowsAndKeys], output: ChainedOutput, width: Part, column: str) -> str:
    offset = access.knowing({width.name: column}).text(output.offset)
    return f"{access.buffers[output.array.name]} + {offset}"


def _known(texts: Mapping[str, str]) -> Leaf:
    return lambda node: texts.get(node.name) if isinstance(node, Read) else None
