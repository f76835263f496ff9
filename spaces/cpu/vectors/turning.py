"""Blocks of as many rows and columns as a vector has lanes, transposed in registers.

- ``tw_turn_D(p, stride, rows, columns, q, ld)``: reads up to ``lanes`` rows of ``lanes`` elements
  of dtype D, ``stride`` apart, and writes ``lanes`` whole vectors of their columns as float32,
  ``ld`` apart; what lies past ``rows`` and ``columns`` counts as zero, and is not read.
- For elements that are only moved (:mod:`spaces.cpu.vectors.words`) the same, written as they are.
- ``tw_turn_ahead_D(p, stride, q, ld, next)``: a whole block of elements that are only moved, and
  the lines at ``next``, which are overwritten after it, asked for before it is written.
"""

from __future__ import annotations

from functools import partial

from spaces.cpu.vectors.exchanges import Exchanges
from spaces.cpu.vectors.simd import C_TYPES

DTYPES = ("float32", "bfloat16")


def prelude(lanes: int) -> str:
    """C definitions for floats; they stand behind those of ``simd``."""
    whole = _whole(Exchanges(lanes, 4, "vf", "tw_shuffle"))
    text = "".join(
        text.replace("@D@", dtype).replace("@T@", C_TYPES[dtype])
        for dtype in DTYPES
        for text in (_for_floats(whole), _FLOATS + _ANY)
    )
    return text.replace("@Q@", "float").replace("@LANES@", str(lanes))


def ahead(lanes: int) -> str:
    """C definition of ``tw_turn_ahead_float32``, behind those of ``simd``."""
    text = _for_floats(_whole(Exchanges(lanes, 4, "vf", "tw_shuffle"), ahead=True))
    return text.replace("@D@", "float32").replace("@T@", "float").replace("@Q@", "float")


def _for_floats(text: str) -> str:
    return text.replace("@LOAD@", "tw_load_@D@").replace("@STORE@", "tw_store_float32")


def words(side: int, size: int) -> str:
    """C text for elements of ``size`` bytes, with the names of ``words`` to be filled in: blocks of
    ``side`` rows and columns, each a vector ``vt``."""
    block = partial(Exchanges, side, size, "vt", "tw_shuffle_words")
    text = _whole(block()) + _WORDS + _ANY + _whole(block(), ahead=True)
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


def _whole(block: Exchanges, ahead: bool = False) -> str:
    """C function ``tw_turn_whole_D``; named variables stay in registers, arrays do not. With
    ``ahead`` it is ``tw_turn_ahead_D``, which asks for the block that is written ``next``, too."""
    rows = [f"x{i}" for i in range(block.lanes)]
    loads = [f"  const {block.vector} {x} = @LOAD@(p + {i} * stride);" for i, x in enumerate(rows)]
    name, more = ("ahead", ", const @Q@ *next") if ahead else ("whole", "")
    asks = [f"  __builtin_prefetch(next + {i} * ld, 1);" for i in range(block.lanes) if ahead]
    stores = [f"  @STORE@(q + {i} * ld, {x});" for i, x in enumerate(block.turned(rows))]
    arguments = f"const @T@ *p, long stride, @Q@ *q, long ld{more}"
    head = f"static inline void tw_turn_{name}_@D@({arguments}) {{"
    return "\n".join([head, *loads, *block.steps, *asks, *stores, "}\n"])
