"""The CUDA C++ that recomputes sums of a row, key by key, where hidden keys have spoilt them.

A key that a row does not see has weight zero there, but other rows of a tile may see it: the
matrix's row for it is multiplied all the same, and zero times an infinity is NaN. Keys that no row
of a block sees are zeros already, so this is rare, and the code is short rather than fast.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.chains.access import Access
from tilewright.spaces.cuda.chains.chain import FragmentChain
from tilewright.spaces.cuda.chains.ends import keys_of
from tilewright.spaces.cuda.chains.lanes import REFERENCES
from tilewright.spaces.cuda.chains.scopes import ExactScope, ThreadScope
from tilewright.spaces.derivation.chained.view import Chained
from tilewright.spaces.derivation.scopes import Leaf
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Recomputing:
    """The recomputation of row ``r`` of a lane, which ``access`` knows, after all keys are visited.

    Keys are those from ``first`` to before ``last``, which are C; states are final. ``sums`` are
    the C texts of element ``e`` of pair ``j`` of each weighing; there are ``pairs`` of them, whose
    first ``column`` is C text. Weights are multiplied by ``scale``.
    """

    chain: FragmentChain
    access: Access[Chained]
    sums: Sequence[str]
    pairs: int
    column: str
    first: str
    last: str
    scale: float = 1.0

    @property
    def _chained(self) -> Chained:
        return self.chain.chained

    def lines(self) -> list[str]:
        """Print the body of a loop over rows.

        Empty if no row has hidden keys, or there are no sums.
        """
        if not self.sums or not (self._chained.bounds or self._chained.conditions):
            return []
        odd = [f"odds[j % 4] = tw::fused({text}, 0.0f, odds[j % 4]);" for text in self.sums]
        cleared = self._each_sum([f"{text} = 0.0f;" for text in self.sums])
        again = [*cleared, *self._each_key("inside", self._added())]
        return [
            "float odds[4] = {};",
            *self._each_sum(odd),
            "float odd = (odds[0] + odds[1]) + (odds[2] + odds[3]);",
            *CUDA.when(
                "__builtin_expect(odd != odd, 0)",
                [*self._hidden(), *CUDA.when("odd != odd", again)],
            ),
        ]

    def _each_sum(self, body: Sequence[str]) -> list[str]:
        pair = CUDA.loop("e", 2, body, unroll=True)
        return CUDA.loop("j", self.pairs, pair, unroll=True)

    def _each_key(self, test: str, body: Sequence[str]) -> list[str]:
        """Return a loop over the visited keys for which a test on ``inside`` holds."""
        last = f"tw_least({self.last}, {keys_of(self._chained).count})"
        inside = "bool inside = key >= low[r] && key < high[r];"
        inner = [inside, *self._conditions(), *CUDA.when(test, body)]
        return CUDA.loop("key", last, inner, first=self.first, unroll=1)

    def _conditions(self) -> list[str]:
        lines: list[str] = []
        scope = ThreadScope("c", self._leaf(), lines, self.chain.row)
        for condition in self._chained.conditions:
            lines.append(f"inside &= {scope.condition(condition)};")
        return lines

    def _hidden(self) -> list[str]:
        """Print how ``odd`` becomes NaN if hidden keys have infinities or NaN."""
        body, width = list[str](), self._chained.width
        scope = ThreadScope("v", self._leaf({width.name: "column"}), body, self.chain.row)
        for weighing in self._chained.weighings:
            for value in (weighing.matrix, *weighing.weight.value_reads):
                if value in self._chained.places or value == weighing.matrix:
                    body.append(f"odd = tw::fused({scope.text(value)}, 0.0f, odd);")
        loop = CUDA.loop("column", width.extent, body, unroll=1)
        return ["odd = 0.0f;", *self._each_key("!inside", loop)]

    def _added(self) -> list[str]:
        """Print how a key's products are added to the sums."""
        lines, (score, dot) = list[str](), self._score()
        leaf = self._leaf()
        states = ThreadScope(
            "m", self.chain.state_leaf("state{}[r]", forms=REFERENCES), lines, self.chain.row
        )
        scope = ExactScope("w", lambda node: score.get(node) or leaf(node), lines, states)
        scale = f" * {self.scale!r}f" if self.scale != 1 else ""
        weights = [f"{scope.text(w.weight)}{scale}" for w in self._chained.weighings]
        body: list[str] = []
        width = self._chained.width
        columns = ThreadScope("v", self._leaf({width.name: "column"}), body, scope)
        for text, weight, weighing in zip(self.sums, weights, self._chained.weighings, strict=True):
            body.append(f"{text} = tw::fused({weight}, {columns.text(weighing.matrix)}, {text});")
        last = f"const int column = tw_least({self.column} + e, {width.extent - 1});"
        return [*dot, *lines, *self._each_sum([last, *body])]

    def _score(self) -> tuple[dict[Expression, str], list[str]]:
        """Return C text of the score, and lines that compute it."""
        depth, body = self._chained.depth, list[str]()
        scope = ThreadScope("d", self._leaf({depth.name: "term"}), body, self.chain.row)
        factors = scope.text(self._chained.left), scope.text(self._chained.right)
        body.append(f"dot = tw::fused({', '.join(factors)}, dot);")
        loop = CUDA.loop("term", depth.extent, body, unroll=1)
        return {self._chained.score: "dot"}, ["float dot = 0.0f;", *loop]

    def _leaf(self, names: dict[str, str] | None = None) -> Leaf:
        return self.access.knowing({self._chained.key.name: "key", **(names or {})}).leaf
