"""The CUDA C++ that recomputes sums of a point, pair by pair, where tiles have spoilt them.

A pair that does not count has weight zero, but others of its tile do: the matrix's row for it is
multiplied all the same, and zero times an infinity is NaN. And a weight that nothing bounds may
leave float16, in which it is multiplied, while its sum does not. Both are rare, and the code is
short rather than fast.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from tilewright.spaces.cuda.chains.scopes import ExactScope, RowScope, ThreadScope
from tilewright.spaces.cuda.pairwise.block import COLUMN, WIDE, Block
from tilewright.spaces.cuda.pairwise.passes import padded
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.pairwise.view import PairSum, Score
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Expression, Read


@dataclass(frozen=True)
class Recomputing:
    """The recomputation of the sums of point ``r`` of a lane; ``row`` has what stays."""

    block: Block
    row: RowScope

    def lines(self) -> list[str]:
        """Print the body of a loop over points; empty if nothing spoils sums."""
        overflows = self.block.kind == "float16"
        if not self.block.of.pairwise.is_bounded and not overflows:
            return []
        odd = self._each_sum(lambda n, _: [f"odd = tw::fused({self.block.sum(n)}, 0.0f, odd);"])
        cleared = self._each_sum(lambda n, _: [f"{self.block.sum(n)} = 0.0f;"])
        again = [*cleared, *self._each_point("inside", self._added())]
        spoilt = ["odd = 0.0f;", *self._each_point("!inside", self._hidden())]
        body = again if overflows else [*spoilt, *CUDA.when("odd != odd", again)]
        return ["float odd = 0.0f;", *odd, *CUDA.when("__builtin_expect(odd != odd, 0)", body)]

    def _each_sum(self, body: Callable[[int, PairSum], Sequence[str]]) -> list[str]:
        """Return loops over the columns that a lane has of each sum."""
        lines = []
        for n, each in enumerate(self.block.of.sums):
            last = f"const int column = tw_least({COLUMN} + e, {each.width.extent - 1});"
            pair = CUDA.loop("e", 2, [last, *body(n, each)], unroll=True)
            lines += CUDA.loop("j", padded(each.width) // WIDE, pair, unroll=True)
        return lines

    def _each_point(self, test: str, body: Sequence[str]) -> list[str]:
        """Return a loop over the points of visited tiles for which a test on ``inside`` holds."""
        block, lines = self.block, list[str]()
        scope = ThreadScope("y", block.pair.leaf, lines, self.row)
        inside = f"const bool inside = {' && '.join(block.counting(scope)) or 'true'};"
        names = split("point", block.of.passing, block.pass_names, block.batch.integer)
        visited = f"(end + {block.tile - 1}) / {block.tile} * {block.tile}"
        last = f"tw_least({visited}, {block.of.pass_count})"
        inner = [*names, *lines, inside, *CUDA.when(test, body)]
        return CUDA.loop("point", last, inner, first="begin", unroll=1)

    def _hidden(self) -> list[str]:
        """Print how ``odd`` becomes NaN if a hidden point has infinities or NaN."""
        lines: list[str] = []
        for n, each in enumerate(self.block.of.sums):
            body: list[str] = []
            known = self.block.pair.knowing({each.width.name: "column"})
            scope = ThreadScope(f"v{n}_", known.leaf, body, self.row)
            body.append(f"odd = tw::fused({scope.text(each.matrix)}, 0.0f, odd);")
            lines += CUDA.loop("column", each.width.extent, body, unroll=1)
        return lines

    def _added(self) -> list[str]:
        """Print how a pair's products are added to the sums."""
        of, lines = self.block.of, list[str]()
        scores = {score.read: f"dot{n}" for n, score in enumerate(of.scores)}
        scope = ExactScope("w", lambda node: self._leaf(node, scores), lines, self.row)
        weights = [scope.text(weight) for _, weight in of.scaled_weights]

        def added(n: int, each: PairSum) -> list[str]:
            body: list[str] = []
            known = self.block.pair.knowing({each.width.name: "column"})
            columns = ThreadScope("v", known.leaf, body, scope)
            total, matrix = self.block.sum(n), columns.text(each.matrix)
            return [*body, f"{total} = tw::fused({weights[n]}, {matrix}, {total});"]

        dots = [line for n, score in enumerate(of.scores) for line in self._dot(n, score)]
        return [*dots, *lines, *self._each_sum(added)]

    def _leaf(self, node: Expression, scores: Mapping[Read, str]) -> str | None:
        of = self.block.of
        if isinstance(node, Read) and node in scores:
            return scores[node]
        if (n := of.scalar(node)) is not None and node in of.numbers:
            return f"tw::load_global(scalar{n} + batch * {of.pass_count} + point)"
        return self.block.pair_leaf(node)

    def _dot(self, n: int, score: Score) -> list[str]:
        body: list[str] = []
        known = self.block.pair.knowing({score.depth.name: "term"})
        scope = ThreadScope("d", known.leaf, body, self.row)
        factors = scope.text(score.left), scope.text(score.right)
        body.append(f"dot{n} = tw::fused({', '.join(factors)}, dot{n});")
        loop = CUDA.loop("term", score.depth.extent, body, unroll=1)
        return [f"float dot{n} = 0.0f;", *loop]
