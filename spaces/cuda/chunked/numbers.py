"""The CUDA C++ of the numbers of a chunk: powers of decays, and weights of its terms.

A warp computes them, one chunk ahead, of elements that it has loaded another one ahead. Exponents
of positions are taken from the one before the chunk, and the state is scaled by the largest
exponent so far, as kernels do that go from position to position
(:mod:`spaces.derivation.recurrent.view`). No power is larger than that of some term, and
differences are taken before sums, so that exponents far from zero cost no accuracy:

    G(i) = sum[j <= i](growth(j))                            within the chunk; G its last one
    power(i, j) = exp((reading(i) + term(j)) + (G(i) - G(j)))
    M' = max(M + G, max[j](term(j) + (G - G(j)) + log(weight(j))))
    kept = exp((M - M') + G)      added(j) = exp((term(j) - M') + (G - G(j))) * weight(j)
    read(i) = exp((reading(i) + M) + G(i))

The logarithm of a weight is that of a power of two which is no less: what joins the state is then
in the range of the factors, whatever their dtype.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.chains.scopes import POWERS, ThreadScope
from tilewright.spaces.cuda.chunked.block import POINT, Block
from tilewright.spaces.cuda.chunked.sizes import (
    ADDED,
    GROWN,
    READ,
    READING,
    TERM,
    TURNS,
    WEIGHT,
)
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.derivation.recurrent.view import Decay
from tilewright.spaces.kernels.text import CUDA
from tilewright.spaces.language.magnitude import magnitudes
from tilewright.spaces.language.program import Operand
from tilewright.spaces.language.tree import Expression, Read

HELPERS = """\
TW_INLINE float tw_summed_before(float own, int lane) {
  float total = own;
#pragma unroll
  for (int step = 1; step < 32; step *= 2) {
    const float other = tw::shuffle(total, (lane - step) & 31);
    total += lane >= step ? other : 0.0f;
  }
  const float before = tw::shuffle(total, (lane - 1) & 31);
  return lane > 0 ? before : 0.0f;
}
TW_INLINE float tw_exponent_above(float x) {
  return (float)(int)(tw::float_bits(x) >> 23 & 255u) - 126.0f;
}
TW_INLINE float tw_greatest_of_warp(float x) {
#pragma unroll
  for (int other = 1; other < 32; other *= 2) x = tw_most(x, tw::shuffle_xor(x, other));
  return x;
}
"""
"""C functions of the lanes of a warp, and the exponent of a power of two above a magnitude."""
FIRST = "-TW_LARGEST"
"""C text of the largest exponent of no terms."""


@dataclass(frozen=True)
class Numbers:
    """The numbers of the chunks of ``block``."""

    block: Block

    def begun(self) -> list[str]:
        """Print what is there before the first chunk."""
        kinds = [C_TYPES[self._operands[read.name].dtype] for read in self._reads]
        return [
            *([f"float greatest = {FIRST}, gone = 0.0f;"] if self._decay else []),
            *(f"{kind} raw{n}[{self._each}] = {{}};" for n, kind in enumerate(kinds)),
            *(CUDA.when("warp == 0", self._fetched("first")) if self._reads else []),
        ]

    def turn(self, chunk: str) -> str:
        """Return C text of the address of the numbers of a chunk."""
        block = self.block
        return f"shared + {block.number_place} + ({chunk}) % {TURNS} * {block.turn_bytes}"

    def lines(self, chunk: str) -> list[str]:
        """Print how the first warp computes the numbers of a chunk; nothing if there are none."""
        if not self.block.sizes.numbers:
            return []
        body = [
            f"const u32 turn = {self.turn(chunk)};",
            f"const int first_number = ({chunk}) * {self.block.chunk};",
            *self._read(),
            *(self._fetched(f"{chunk} + 1") if self._reads else []),
            *(self._powers(self._decay) if self._decay else []),
        ]
        return CUDA.when("warp == 0", body)

    def exponent(self, row: str, term: str) -> str:
        """Return C text of the exponent of a pair, of the suffixes of its names."""
        names = self.block.sizes.numbers
        both = [f"{READING}{row}"] * (READING in names) + [f"{TERM}{term}"] * (TERM in names)
        parts = [f"({' + '.join(both)})"] * bool(both)
        parts += [f"({GROWN}{row} - {GROWN}{term})"] * (GROWN in names)
        return " + ".join(parts)

    def power(self, exponent: str) -> str:
        """Return C text of the power of a decay."""
        assert self._decay is not None
        return f"tw::exp2_approx(({exponent}) * {POWERS[self._decay.function]!r}f)"

    @property
    def has_powers(self) -> bool:
        """Tell whether terms have powers, and states an exponent."""
        return self._decay is not None

    @property
    def _decay(self) -> Decay | None:
        return self.block.view.decay

    @property
    def _each(self) -> int:
        """Positions of a lane."""
        return ceil_div(self.block.chunk, WARP)

    def _loop(self, body: list[str]) -> list[str]:
        position = f"const int position = lane * {self._each} + i;"
        return CUDA.loop("i", self._each, [position, *body], unroll=True)

    @property
    def _stored(self) -> str:
        """C text of a test that the chunk has a position; empty if it always has."""
        return f"position < {self.block.chunk}" if self.block.chunk % WARP else ""

    def _store(self, values: dict[str, str]) -> list[str]:
        stores = [
            f"tw::store_shared({self.block.number('turn', name, 'position')}, {value});"
            for name, value in values.items()
        ]
        return CUDA.when(self._stored, stores) if self._stored else stores

    @property
    def _operands(self) -> Mapping[str, Operand]:
        return self.block.view.program.operand

    @cached_property
    def _values(self) -> Mapping[str, Expression]:
        """The expressions of numbers that are read, by their names."""
        view, decay = self.block.view, self._decay
        values: dict[str, Expression] = {WEIGHT: view.weight}
        if decay:
            values |= {GROWN: decay.growth, TERM: decay.term, READING: decay.reading}
        return {n: value for n, value in values.items() if n in self.block.sizes.numbers}

    @cached_property
    def _reads(self) -> Sequence[Read]:
        """The reads of arrays in these expressions."""
        found = (read for value in self._values.values() for read in value.value_reads)
        return tuple(dict.fromkeys(found))

    def _point(self, first: str) -> str:
        """Return the declaration of a position that exists."""
        last = self.block.view.key.extent - 1
        return f"const {self.block.batch.integer} {POINT} = tw_least({first} + position, {last});"

    def _fetched(self, chunk: str) -> list[str]:
        """Print how a lane loads what its positions of a chunk read."""
        loads = [
            f"raw{n}[i] = tw::load_global({self.block.at.address(read)});"
            for n, read in enumerate(self._reads)
        ]
        return self._loop([self._point(f"({chunk}) * {self.block.chunk}"), *loads])

    def _leaf(self, node: Expression) -> str | None:
        if isinstance(node, Read) and node in self._reads:
            raw = f"raw{self._reads.index(node)}[i]"
            is_integer = self._operands[node.name].element.is_integer
            return f"(float){raw}" if is_integer else f"tw::to_float({raw})"
        return self.block.at.leaf(node)

    def _read(self) -> list[str]:
        """Print how a lane computes what its positions have, and leaves it in shared memory."""
        lines: list[str] = []
        known = magnitudes(self.block.view.program)
        scope = ThreadScope("n", self._leaf, lines, magnitudes=known)
        found = {name: scope.text(value) for name, value in self._values.items()}
        body = [self._point("first_number"), *lines]
        body += [f"{name}[i] = {text};" for name, text in found.items()]
        body += self._store({name: f"{name}[i]" for name in found if name != GROWN})
        return [*(f"float {name}[{self._each}];" for name in found), *self._loop(body)]

    def _powers(self, decay: Decay) -> list[str]:
        """Print how exponents are added up, and what powers come of them."""
        lines = self._grown() if GROWN in self.block.sizes.numbers else ["float end = 0.0f;"]
        return [*lines, *self._greatest(decay), *self._scaled()]

    def _grown(self) -> list[str]:
        inside = self._stored
        own = f"{inside} ? {GROWN}[i] : 0.0f" if inside else f"{GROWN}[i]"
        return [
            "float end = 0.0f;",
            *self._loop([f"end += {own};", f"{GROWN}[i] = end;"]),
            "const float before = tw_summed_before(end, lane);",
            *self._loop([f"{GROWN}[i] += before;", *self._store({GROWN: f"{GROWN}[i]"})]),
            f"end = tw::shuffle({GROWN}[{self._each - 1}], 31);",
        ]

    def _term(self) -> str:
        """Return C text of the exponent of a term at the end of its chunk, beside ``{}``."""
        names = self.block.sizes.numbers
        term = f"{TERM}[i]" if TERM in names else "0.0f"
        return f"({term} - {{}})" + (f" + (end - {GROWN}[i])" if GROWN in names else "")

    def _greatest(self, decay: Decay) -> list[str]:
        """Print the largest exponent of all terms at the end of the chunk."""
        test = f"position < {self.block.chunk} && first_number + position < "
        test += str(self.block.view.key.extent)
        own = self._term().format("0.0f")
        if WEIGHT in self.block.sizes.numbers:
            unit = 1 / POWERS[decay.function]
            own += f" + tw_exponent_above({WEIGHT}[i]) * {unit!r}f"
        return [
            "float next = greatest + end;",
            f"float most = {FIRST};",
            *self._loop([f"most = {test} ? tw_most(most, {own}) : most;"]),
            "next = tw_most(next, tw_greatest_of_warp(most));",
        ]

    def _scaled(self) -> list[str]:
        names = self.block.sizes.numbers
        read = [f"({READING}[i] + greatest)" if READING in names else "greatest"]
        read += [f"{GROWN}[i]"] * (GROWN in names)
        added = self.power(self._term().format("next"))
        added += f" * {WEIGHT}[i]" * (WEIGHT in names)
        kept = self.power("(greatest - next) + end")
        return [
            *self._loop(self._store({READ: self.power(" + ".join(read)), ADDED: added})),
            *CUDA.when("lane == 0", f"tw::store_shared({self.block.kept('turn')}, {kept});"),
            "greatest = next;",
            "gone += end;",
        ]
