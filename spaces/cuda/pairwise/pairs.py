"""The CUDA C++ of the pairs of a tile: scores, weights in their places, and what is added up."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.unrolled import Body, unrolled
from tilewright.spaces.cuda.chains.scopes import RowScope, ThreadScope
from tilewright.spaces.cuda.mma.code import INSTRUCTIONS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, multiply_add
from tilewright.spaces.cuda.pairwise.block import ROWS, WIDE, Block
from tilewright.spaces.cuda.pairwise.passes import padded
from tilewright.spaces.derivation.chained.text import split
from tilewright.spaces.derivation.pairwise.view import PairSum, Score
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Pairs:
    """The pairs of the points of a warp and of the tile from point ``tile`` on, at ``stage``.

    ``row`` has what is the same for a point that stays.
    """

    block: Block
    row: RowScope

    def lines(self) -> list[str]:
        """Print the work on a tile."""
        shape = f"[{self.block.fragments}][{self.block.tile // WIDE}][4]"
        declared = [f"float pairs{n}{shape} = {{}};" for n in range(self.block.of.tiles)]
        return [*declared, *self._scores(), *self._weights(), *self._hidden(), *self._sums()]

    # -- products ----------------------------------------------------------------------------------

    def _scores(self) -> list[str]:
        return [
            line for n, each in enumerate(self.block.of.scores) for line in self._score(n, each)
        ]

    def _score(self, n: int, score: Score) -> list[str]:
        """Print the product of a factor that stays and one that passes."""
        block = self.block
        own, other = block.of.stays(score), block.of.passes(score)
        a, b = block.stay_fragments(own), block.pass_fragments(other, points_are_columns=True)
        stay, passing = dict(block.stay_places())[own], dict(block.pass_places())[other]

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            return [
                f"u32 a[{a.count}][4], b[{b.count}][4];",
                *a.load(f"shared + {stay}", k),
                *b.load(f"stage + {passing}", k),
                *unrolled(repeat(a.count, 2 * b.count), 0, self._multiply(f"pairs{n}"), "t"),
            ]

        return CUDA.block(*unrolled(repeat(padded(score.depth) // FRAGMENT), 0, step, "k"))

    def _multiply(self, totals: str) -> Body:
        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            total = f"{totals}[{i.text}][{j.text}]"
            return multiply_add(INSTRUCTIONS[self.block.kind], total, ("a", "b"), indices)

        return body

    def _sums(self) -> list[str]:
        return [line for n, each in enumerate(self.block.of.sums) for line in self._sum(n, each)]

    def _sum(self, n: int, each: PairSum) -> list[str]:
        """Print the product of weights, which are the left operand as they lie, and a matrix."""
        block, matrix = self.block, (each.matrix, each.width)
        _, weight = block.of.scaled_weights[n]
        pairs = f"pairs{block.of.weights.index(weight)}"
        place = f"stage + {dict(block.pass_places())[matrix]}"
        b = block.pass_fragments(matrix, points_are_columns=False)
        kind, count = C_TYPES[block.kind], block.fragments
        two = (f"{pairs}[f][{{0}} + i / 2][i % 2 * 2 + {e}]" for e in range(2))
        packed = f"a[f][i] = tw::pack2<{kind}>({', '.join(two)});"

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            four = CUDA.loop("i", 4, packed.format((k * 2).text), unroll=True)
            return [
                f"u32 a[{count}][4], b[{b.count}][4];",
                *CUDA.loop("f", count, four, unroll=True, brief=True),
                *b.load(place, k),
                *unrolled(repeat(count, 2 * b.count), 0, self._multiply(f"sums{n}"), "t"),
            ]

        return CUDA.block(*unrolled(repeat(block.tile // FRAGMENT), 0, step, "k"))

    # -- elements ----------------------------------------------------------------------------------

    def _elements(self, body: Sequence[str], before: Sequence[str] = ()) -> list[str]:
        """Return a loop of the lines over the pairs of a lane: of point ``r`` that stays, and of
        the point ``tile + at`` that passes; the lines ``before`` are for two such points."""
        block = self.block
        last = block.of.pass_count - 1
        integer, names = block.batch.integer, block.pass_names
        rows = ["const int f = r / 2, e = r % 2 * 2 + c;", *body]
        points = [
            f"const int at = j * {WIDE} + lane % 4 * 2 + c;",
            f"const {integer} point = tw_least(tile + at, {last});",
            *split("point", block.of.passing, names, integer),
            *CUDA.loop("r", ROWS * block.fragments, rows, unroll=True),
        ]
        two = [*before, *CUDA.loop("c", 2, points, unroll=True)]
        return CUDA.loop("j", block.tile // WIDE, two, unroll=True)

    def _weights(self) -> list[str]:
        """Print how scores become weights, in their places."""
        lines: list[str] = []
        scope = ThreadScope("x", self._leaf, lines, self.row)
        values = [scope.text(weight) for weight in self.block.of.weights]
        lines += [f"pairs{n}[f][j][e] = {value};" for n, value in enumerate(values)]
        numbers = (line for n in range(len(self.block.of.numbers)) for line in self._two(n))
        return self._elements(lines, list(numbers))

    def _two(self, n: int) -> list[str]:
        """Print how the numbers ``n`` of two points are loaded."""
        place = f"stage + {self.block.number_place(n)} + (j * {WIDE} + lane % 4 * 2) * 4"
        return [f"float number{n}[2];", f"tw::load_shared<2>(number{n}, {place});"]

    def _leaf(self, node: Expression) -> str | None:
        of = self.block.of
        for n, score in enumerate(of.scores):
            if node == score.read:
                return f"pairs{n}[f][j][e]"
        if node in of.numbers:
            return f"number{of.numbers.index(node)}[c]"
        return self.block.pair_leaf(node)

    def _hidden(self) -> list[str]:
        """Print how the weights of pairs that do not count become zero, if there are some."""
        of, lines = self.block.of, list[str]()
        scope = ThreadScope("y", self.block.pair.leaf, lines, self.row)
        tests = [f"tile + at < {of.pass_count}"] * (of.pass_count % self.block.tile > 0)
        tests += self.block.counting(scope)
        if not tests:
            return []
        none = " ".join(f"pairs{n}[f][j][e] = 0.0f;" for n in range(len(of.weights)))
        hide = self._elements([*lines, f"if (!({' && '.join(tests)})) {{ {none} }}"])
        return CUDA.when("!whole", hide)
