"""Transposition of blocks of as many rows and columns as a vector has lanes, in registers.

- ``tw_turn_D(p, stride, rows, columns, q, ld)``: reads up to ``lanes`` rows of ``lanes`` elements
  of type D, ``stride`` apart, and writes ``lanes`` whole vectors of their columns as float32,
  ``ld`` apart; elements past ``rows`` and ``columns`` count as zero, and are not read.
- For elements that are only moved (:mod:`spaces.cpu.vectors.words`) the same without a conversion.
- ``tw_turn_whole_D(p, stride, q, ld)``: the same for a whole block.
"""

from __future__ import annotations

from tilewright.spaces.cpu.vectors.exchanges import Exchanges
from tilewright.spaces.cpu.vectors.simd import C_TYPES, FLOATS


def prelude(lanes: int) -> str:
    """Return the C definitions for floats; they stand behind those of ``simd``."""
    whole = _whole(Exchanges(lanes, 4, "vf", "tw_shuffle"))
    text = "".join(
        text.replace("@D@", dtype).replace("@T@", C_TYPES[dtype])
        for dtype in FLOATS
        for text in (_for_floats(whole), _FLOATS + _ANY)
    )
    return text.replace("@Q@", "float").replace("@LANES@", str(lanes))


def _for_floats(text: str) -> str:
    return text.replace("@LOAD@", "tw_load_@D@").replace("@STORE@", "tw_store_float32")


def words(side: int, size: int) -> str:
    """Return the C text for elements of ``size`` bytes, in blocks of ``side`` rows and columns,
    each a vector ``vt``; the names of ``words`` are still to be filled in."""
    text = _whole(Exchanges(side, size, "vt", "tw_shuffle_words")) + _WORDS + _ANY
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


def _whole(block: Exchanges) -> str:
    """Return the C function ``tw_turn_whole_D``. Named variables stay in registers; arrays do
    not."""
    rows = [f"x{i}" for i in range(block.lanes)]
    loads = [f"  const {block.vector} {x} = @LOAD@(p + {i} * stride);" for i, x in enumerate(rows)]
    columns = block.transposed(rows)
    stores = [f"  @STORE@(q + {i} * ld, {x});" for i, x in enumerate(columns)]
    head = "static inline void tw_turn_whole_@D@(const @T@ *p, long stride, @Q@ *q, long ld) {"
    return "\n".join([head, *loads, *block.steps, *stores, "}\n"])
