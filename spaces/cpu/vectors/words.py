"""Vectors of elements of 1, 2 or 8 bytes whose bits are moved, whatever they stand for.

``vw`` is as long as a vector of floats. D is the type of unsigned numbers of that size; its
functions are those of :mod:`spaces.cpu.vectors.simd`, ``moves`` and ``transposing`` for floats.
A transposition leaves elements as they are, in blocks of ``side`` rows and columns. ``vi`` has an
int for each lane.
"""

from __future__ import annotations

from tilewright.spaces.cpu.isa import nontemporal
from tilewright.spaces.cpu.vectors import moves, transposing

WORDS = {1: "uint8", 2: "uint16", 8: "uint64"}
"""The names of elements by their bytes."""
WORD_TYPES = {1: "unsigned char", 2: "unsigned short", 8: "unsigned long"}
"""Their C types."""


def prelude(isa: str, vector_bytes: int, size: int, side: int) -> str:
    """Return the C definitions for elements of ``size`` bytes."""
    names = {"D": WORDS[size], "T": WORD_TYPES[size], "LANES": str(vector_bytes // size)}
    names |= {"BYTES": str(vector_bytes), "INTS": str(4 * vector_bytes // size)}
    names |= {"BLOCK": str(side * size), "SIDE": str(side)}
    text = _TYPES + nontemporal(isa) + moves.indices(vector_bytes // size) + _ACCESS
    text += transposing.words(side, size)
    for name, value in names.items():
        text = text.replace(f"@{name}@", value)
    return text


_TYPES = """\
typedef @T@ vw __attribute__((vector_size(@BYTES@)));
typedef @T@ vt __attribute__((vector_size(@BLOCK@)));
typedef vw vw_any __attribute__((aligned(sizeof(@T@)), may_alias));
typedef vt vt_any __attribute__((aligned(sizeof(@T@)), may_alias));
typedef float vf __attribute__((vector_size(@BYTES@)));
typedef int vi __attribute__((vector_size(@INTS@)));
#ifdef __clang__
#define tw_shuffle_words(a, b, ...) __builtin_shufflevector(a, b, __VA_ARGS__)
#else
#define tw_shuffle_words(a, b, ...) __builtin_shuffle(a, b, (vt){__VA_ARGS__})
#endif
"""

_ACCESS = """\
static inline vw tw_load_@D@(const @T@ *p) { return *(const vw_any *)p; }
static inline void tw_store_@D@(@T@ *p, vw x) { *(vw_any *)p = x; }
static inline void tw_store_block_@D@(@T@ *p, vt x) { *(vt_any *)p = x; }
static inline vw tw_load_first_@D@(const @T@ *p, long n) {
  vw x = {0};
  for (long i = 0; i < n; i++) x[i] = p[i];
  return x;
}
static inline void tw_store_first_@D@(@T@ *p, vw x, long n) {
  for (long i = 0; i < n; i++) p[i] = x[i];
}
static inline vw tw_splat_@D@(const @T@ *p) { return *p | (vw){0}; }
static inline vw tw_gather_@D@(const @T@ *p, long stride, long n) {
  vw x = {0};
  for (long i = 0; i < n && i < @LANES@; i++) x[i] = p[i * stride];
  return x;
}
static inline vw tw_scattered_@D@(const @T@ *p, vi o, long n) {
  vw x = {0};
  for (long i = 0; i < n && i < @LANES@; i++) x[i] = p[o[i]];
  return x;
}
static inline void tw_stream_@D@(@T@ *p, vw x) {
  if ((unsigned long)p % sizeof(vw)) tw_store_@D@(p, x);
  else tw_nontemporal_vf((void *)p, (vf)x);
}
static inline long tw_to_line_@D@(const @T@ *p) { return (-(unsigned long)p & 63) / sizeof *p; }
"""
