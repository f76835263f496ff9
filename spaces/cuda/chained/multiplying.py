"""The products of a chained kernel: scores, and sums of weights times matrices."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import repeat
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.blocks.unrolled import Body, unrolled
from tilewright.spaces.cuda.chained.block import WIDE, Block
from tilewright.spaces.cuda.chained.operands import Operands
from tilewright.spaces.cuda.chains.tile_chain import Written
from tilewright.spaces.cuda.mma.code import INSTRUCTIONS
from tilewright.spaces.cuda.mma.fragments import FRAGMENT, multiply_add
from tilewright.spaces.derivation.rounding.reductions import RAISED
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.tree import Expression


@dataclass(frozen=True)
class Multiplying:
    """The work of a warp on a tile of keys in shared memory."""

    block: Block
    operands: Operands

    def lines(self) -> list[str]:
        """Print the work on one tile of keys: scores, chain, sums."""
        return [self.no_scores(), *self.scores(), *self.weighed()]

    def no_scores(self) -> str:
        """Return the declaration of scores of zero."""
        return f"float s[{self.block.slices}][{self.block.keys // WIDE}][4] = {{}};"

    def weighed(self) -> list[str]:
        """Print the chain and the sums, from the scores on."""
        return ["const int first = tile + lane % 4 * 2;", *self._weighed()]

    def _weighed(self) -> list[str]:
        """Print both once if the chain hides keys by itself, else for whole tiles apart."""
        chain = self.block.chain
        within = self.block.spans.within(self.block.keys)
        if chain.masked_value is not None:
            return self._weigh(chain.any_tile(within))
        masked = CUDA.block(*self._weigh(chain.tile(masked=True)))
        if not within:
            return masked
        *unmasked, end = CUDA.when(" && ".join(within), self._weigh(chain.tile(masked=False)))
        return [*unmasked, f"{end} else", *masked]

    def scores(self) -> list[str]:
        """Print how the terms of the tile in shared memory are added to the scores."""
        tile = self.operands.right("tile")
        right = self.operands.fragments("b", tile, keys_are_columns=True)

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            held = f"q[{k.text}]" if self.block.holds_rows else "a"
            lines = [f"u32 b[{right.count}][4];", *right.load("stage", k)]
            if not self.block.holds_rows:
                lines.append(f"u32 a[{self.block.slices}][4];")
                lines += self.operands.load_row_fragments(k)
            body = self._multiply("s", held, "b", self.operands.score_kind)
            return [*lines, *unrolled(repeat(self.block.slices, right.count * 2), 0, body, "t")]

        return unrolled(repeat(self.operands.steps), 0, step, "k")

    def _multiply(self, sums: str, left: str, right: str, kind: str) -> Body:
        """Return the body of a loop over the products of fragments of dtype ``kind``."""

        def body(indices: tuple[Index, ...]) -> list[str]:
            i, j = indices
            total = f"{sums}[{i.text}][{j.text}]"
            return multiply_add(INSTRUCTIONS[kind], total, (left, right), indices)

        return body

    def _weigh(self, chain: Written) -> list[str]:
        """Print how the lines of ``chain`` turn scores to weights, and these are multiplied."""
        packed = self._packed()
        body = [*chain.lines, *self._correct(chain), *packed.lines]
        slices = [*packed.declared, *CUDA.loop("f", self.block.slices, body, unroll=True)]
        places = self.operands.matrix_places("stage")
        for n, weighing in enumerate(self.block.chained.weighings):
            slices += self._sum(n, weighing.matrix, packed.names[n], places[n])
        return slices

    def _correct(self, chain: Written) -> list[str]:
        """Print how sums are rescaled if the results they depend on moved."""
        factors = enumerate(chain.factors)
        scaled = [f"sums{n}[f][j][e] *= {name}[e / 2];" for n, name in factors if name]
        if not scaled:
            return []
        four = CUDA.loop("e", 4, f"{{ {' '.join(scaled)} }}", unroll=True)
        columns = self.block.columns // WIDE
        lines = CUDA.loop("j", columns, four, unroll=True, brief=True)
        return CUDA.when(chain.moved, lines) if chain.moved else lines

    def _packed(self) -> _Packed:
        """Return the weights as the left operand of the second products."""
        weights = self.block.chain.weights
        places = [weights[weighing.weight]("e") for weighing in self.block.chained.weighings]
        arrays = {place: f"weights{i}" for i, place in enumerate(dict.fromkeys(places))}
        names = [arrays[place] for place in places]
        steps = self._weight_steps
        lines = []
        for place in weights.values():
            array = arrays.get(place("e"))
            if array is None:
                continue
            store = f"{array}[k][f][i] = {self._register(place)};"
            four = CUDA.loop("i", 4, store, unroll=True)
            lines += CUDA.loop("k", steps, four, unroll=True, brief=True)
        declared = [f"u32 {name}[{steps}][{self.block.slices}][4];" for name in arrays.values()]
        return _Packed(declared, lines, names)

    @property
    def _weight_steps(self) -> int:
        """Fragments along the keys of a tile."""
        return self.block.keys // (FRAGMENT * (1 + self.block.has_byte_weights))

    def _register(self, place: Callable[[str], str]) -> str:
        """Return C text of the weights in register ``i`` of fragment ``k``."""
        kind = C_TYPES[self.block.weight_kind]
        if not self.block.has_byte_weights:
            low, high = place("(k * 8 + i * 2)"), place("(k * 8 + i * 2 + 1)")
            return f"tw::pack2<{kind}>({low}, {high})"
        places = (place(f"(k * 16 + i / 2 * 8 + i % 2 * 2 + {n})") for n in (0, 1, 4, 5))
        return f"tw::pack4<{kind}>({', '.join(f'{each} * {RAISED!r}f' for each in places)})"

    def _sum(self, n: int, matrix: Expression, weights: str, place: str) -> list[str]:
        """Print the product of weights and a matrix's tile."""
        tile = self.operands.matrix(matrix, "tile")
        right = self.operands.fragments("v", tile, keys_are_columns=False)

        def step(indices: tuple[Index, ...]) -> list[str]:
            (k,) = indices
            body = self._multiply(f"sums{n}", f"{weights}[{k.text}]", "v", self.block.weight_kind)
            return [
                f"u32 v[{right.count}][4];",
                *right.load(place, k),
                *unrolled(repeat(self.block.slices, right.count * 2), 0, body, "t"),
            ]

        return CUDA.block(*unrolled(repeat(self._weight_steps), 0, step, "k"))


@dataclass(frozen=True)
class _Packed:
    declared: list[str]
    lines: list[str]
    names: list[str]
