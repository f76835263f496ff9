"""Blocks of as many rows and columns as a vector has lanes, transposed in registers.

- ``tw_turn_D(p, stride, rows, columns, q, ld)``: reads up to ``lanes`` rows of ``lanes`` elements
  of dtype D, ``stride`` apart, and writes ``lanes`` whole vectors of their columns as float32,
  ``ld`` apart; what lies past ``rows`` and ``columns`` counts as zero, and is not read.

Groups of four rows are transposed within the 128-bit parts of vectors, each exchange one
instruction; then the parts change places (as in Intel's Optimization Reference Manual, "8x8 Matrix
Transpose Using AVX").
"""

from __future__ import annotations

from collections.abc import Sequence

from spaces.cpu.tiles.simd import C_TYPES

PART = 4
"""Floats of the part of a vector within which an exchange is cheap."""
DTYPES = ("float32", "bfloat16")


def prelude(lanes: int) -> str:
    """C definitions; they stand behind those of ``simd``."""
    whole = _whole(lanes)
    text = "".join(
        text.replace("@D@", dtype).replace("@T@", C_TYPES[dtype])
        for dtype in DTYPES
        for text in (whole, _ANY)
    )
    return text.replace("@LANES@", str(lanes))


_ANY = """\
static __attribute__((noinline)) void tw_turn_part_@D@(
    const @T@ *p, long stride, long rows, long columns, float *q, long ld) {
  float x[@LANES@ * @LANES@] = {0};
  for (long i = 0; i < rows && i < @LANES@; i++)
    tw_store_float32(x + i * @LANES@, tw_load_most_@D@(p + i * stride, columns));
  tw_turn_whole_float32(x, @LANES@, q, ld);
}
static inline void tw_turn_@D@(
    const @T@ *p, long stride, long rows, long columns, float *q, long ld) {
  if (rows >= @LANES@ && columns >= @LANES@) tw_turn_whole_@D@(p, stride, q, ld);
  else tw_turn_part_@D@(p, stride, rows, columns, q, ld);
}
"""


def _whole(lanes: int) -> str:
    """C function ``tw_turn_whole_D``; named variables stay in registers, arrays do not."""
    vectors = [f"x{i}" for i in range(lanes)]
    loads = [f"  const vf {x} = tw_load_@D@(p + {i} * stride);" for i, x in enumerate(vectors)]
    steps: list[str] = []
    groups = [
        _four(vectors[g : g + PART], lanes, f"g{g // PART}", steps) for g in range(0, lanes, PART)
    ]
    stores = []
    for c in range(PART):
        column = [group[c] for group in groups]
        for part, name in enumerate(_exchanged(column, lanes, f"c{c}", steps)):
            stores.append(f"  tw_store_float32(q + {part * PART + c} * ld, {name});")
    head = "static inline void tw_turn_whole_@D@(const @T@ *p, long stride, float *q, long ld) {"
    return "\n".join([head, *loads, *steps, *stores, "}\n"])


def _four(rows: Sequence[str], lanes: int, name: str, steps: list[str]) -> list[str]:
    """Four vectors transposed within each part."""
    a, b, c, d = rows
    starts = range(0, lanes, PART)
    low = [lane for s in starts for lane in (s, lanes + s, s + 1, lanes + s + 1)]
    pairs = [lane for s in starts for lane in (s, s + 1, lanes + s, lanes + s + 1)]
    high, last = [lane + 2 for lane in low], [lane + 2 for lane in pairs]
    ab = [_shuffled(f"{name}_{i}", a, b, mask, steps) for i, mask in enumerate((low, high))]
    cd = [_shuffled(f"{name}_{i + 2}", c, d, mask, steps) for i, mask in enumerate((low, high))]
    return [
        _shuffled(f"{name}_{4 + 2 * half + i}", ab[half], cd[half], mask, steps)
        for half in range(2)
        for i, mask in enumerate((pairs, last))
    ]


def _exchanged(vectors: list[str], lanes: int, name: str, steps: list[str]) -> list[str]:
    """Part ``k`` of vector ``g`` becomes part ``g`` of vector ``k``."""
    parts = lanes // PART
    distance = parts // 2
    while distance:
        for g in (g for g in range(parts) if not g & distance):
            a, b = vectors[g], vectors[g + distance]
            for move, place in ((0, g), (distance, g + distance)):
                mask = [
                    PART * (k + move if not k & distance else parts + k - distance + move) + i
                    for k in range(parts)
                    for i in range(PART)
                ]
                vectors[place] = _shuffled(f"{name}_{distance}_{place}", a, b, mask, steps)
        distance //= 2
    return vectors


def _shuffled(name: str, a: str, b: str, mask: Sequence[int], steps: list[str]) -> str:
    steps.append(f"  const vf {name} = tw_shuffle({a}, {b}, {', '.join(map(str, mask))});")
    return name
