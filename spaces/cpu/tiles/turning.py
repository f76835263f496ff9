"""Blocks of as many rows and columns as a vector has lanes, transposed in registers.

- ``tw_turn_D(p, stride, rows, columns, q, ld)``: reads up to ``lanes`` rows of ``lanes`` elements
  of dtype D, ``stride`` apart, and writes ``lanes`` whole vectors of their columns as float32,
  ``ld`` apart; what lies past ``rows`` and ``columns`` counts as zero, and is not read.
- For elements that are only moved (:mod:`spaces.cpu.tiles.words`) the same, written as they are.

Groups of as many rows as 128 bits have elements are transposed within the 128-bit parts of vectors,
where an exchange is one cheap instruction; then the parts change places (as in Intel's Optimization
Reference Manual, "8x8 Matrix Transpose Using AVX").
"""

from __future__ import annotations

from dataclasses import dataclass, field

from spaces.cpu.tiles.simd import C_TYPES

PART_BYTES = 16
"""Of the part of a vector within which an exchange is cheap."""
DTYPES = ("float32", "bfloat16")


def prelude(lanes: int) -> str:
    """C definitions for floats; they stand behind those of ``simd``."""
    whole = _Block(lanes, 4, "vf", "tw_shuffle").function
    text = "".join(
        text.replace("@D@", dtype).replace("@T@", C_TYPES[dtype])
        for dtype in DTYPES
        for text in (_for_floats(whole), _FLOATS + _ANY)
    )
    return text.replace("@Q@", "float").replace("@LANES@", str(lanes))


def _for_floats(text: str) -> str:
    return text.replace("@LOAD@", "tw_load_@D@").replace("@STORE@", "tw_store_float32")


def words(side: int, size: int) -> str:
    """C text for elements of ``size`` bytes, with the names of ``words`` to be filled in: blocks of
    ``side`` rows and columns, each a vector ``vt``."""
    text = _Block(side, size, "vt", "tw_shuffle_words").function + _WORDS + _ANY
    text = text.replace("@LOAD@(", "*(const vt_any *)(").replace("@Q@", "@T@")
    return text.replace("@STORE@", "tw_store_block_@D@").replace("@LANES@", "@SIDE@")


_ANY = """\
static inline void tw_turn_@D@(
    const @T@ *p, long stride, long rows, long columns, @Q@ *q, long ld) {
  if (rows >= @LANES@ && columns >= @LANES@) tw_turn_whole_@D@(p, stride, q, ld);
  else tw_turn_part_@D@(p, stride, rows, columns, q, ld);
}
"""

_FLOATS = """\
static __attribute__((noinline)) void tw_turn_part_@D@(
    const @T@ *p, long stride, long rows, long columns, float *q, long ld) {
  float x[@LANES@ * @LANES@] = {0};
  for (long i = 0; i < rows && i < @LANES@; i++)
    tw_store_float32(x + i * @LANES@, tw_load_most_@D@(p + i * stride, columns));
  tw_turn_whole_float32(x, @LANES@, q, ld);
}
"""

_WORDS = """\
static __attribute__((noinline)) void tw_turn_part_@D@(
    const @T@ *p, long stride, long rows, long columns, @T@ *q, long ld) {
  @T@ x[@SIDE@ * @SIDE@] = {0};
  for (long i = 0; i < rows && i < @SIDE@; i++)
    for (long j = 0; j < columns && j < @SIDE@; j++) x[i * @SIDE@ + j] = p[i * stride + j];
  tw_turn_whole_@D@(x, @SIDE@, q, ld);
}
"""


@dataclass(frozen=True)
class _Block:
    """A transposition of ``lanes`` vectors of as many elements of ``size`` bytes."""

    lanes: int
    size: int
    vector: str
    shuffle: str
    steps: list[str] = field(default_factory=list)

    @property
    def part(self) -> int:
        """Elements of a part."""
        return PART_BYTES // self.size

    @property
    def function(self) -> str:
        """C function ``tw_turn_whole_D``; named variables stay in registers, arrays do not."""
        rows = [f"x{i}" for i in range(self.lanes)]
        loads = [
            f"  const {self.vector} {x} = @LOAD@(p + {i} * stride);" for i, x in enumerate(rows)
        ]
        groups = [self._within(rows[g : g + self.part]) for g in range(0, self.lanes, self.part)]
        stores = []
        for c in range(self.part):
            for part, name in enumerate(self._exchanged([group[c] for group in groups])):
                stores.append(f"  @STORE@(q + {part * self.part + c} * ld, {name});")
        head = "static inline void tw_turn_whole_@D@(const @T@ *p, long stride, @Q@ *q, long ld) {"
        return "\n".join([head, *loads, *self.steps, *stores, "}\n"])

    def _within(self, rows: list[str]) -> list[str]:
        """As many vectors as a part has elements, transposed within each part: every stage
        interleaves halves of vector ``i`` with those of the one half of them away."""
        half, parts = self.part // 2, range(0, self.lanes, self.part)
        low = [x for s in parts for k in range(half) for x in (s + k, self.lanes + s + k)]
        for _ in range(half.bit_length()):
            pairs = zip(rows[:half], rows[half:], strict=True)
            masks = (low, [lane + half for lane in low])
            rows = [self._shuffled(a, b, mask) for a, b in pairs for mask in masks]
        return rows

    def _exchanged(self, vectors: list[str]) -> list[str]:
        """Part ``k`` of vector ``g`` becomes part ``g`` of vector ``k``."""
        parts = self.lanes // self.part
        distance = parts // 2
        while distance:
            for g in (g for g in range(parts) if not g & distance):
                a, b = vectors[g], vectors[g + distance]
                for move, place in ((0, g), (distance, g + distance)):
                    mask = [
                        self.part * (k + move if not k & distance else parts + k - distance + move)
                        + i
                        for k in range(parts)
                        for i in range(self.part)
                    ]
                    vectors[place] = self._shuffled(a, b, mask)
            distance //= 2
        return vectors

    def _shuffled(self, a: str, b: str, mask: list[int]) -> str:
        name, lanes = f"s{len(self.steps)}", ", ".join(map(str, mask))
        self.steps.append(f"  const {self.vector} {name} = {self.shuffle}({a}, {b}, {lanes});")
        return name
