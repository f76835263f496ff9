"""The C that decodes words of codes into vectors of values.

Few codes may be looked up in registers by a shuffle. It ignores the upper bits of its indices, so
that a code needs a shift alone. Whole numbers may also stay at their place in a word, where they
count ones in the fraction of a power of two, which is subtracted together with a whole zero point.
Other floats are assembled from their fields, without subnormal numbers on the way, for a caller may
have told the processor to flush these to zero.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from tilewright.spaces.cpu.isa import repeated
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.low_bit.decoding import (
    RAISED,
    RAISED_BITS,
    CodeValues,
    filled_in,
    literal,
)
from tilewright.spaces.low_bit.order import Slot, word_groups
from tilewright.spaces.low_bit.values import POWERS

Lines = list[str]


SHUFFLED, COMPUTED = "shuffled", "computed"
"""The ways to values: looked up in registers, or any other one."""


def table_vectors(name: str, lanes: int) -> int:
    """Return the number of vectors that hold a table of values; 0 if there are too many codes."""
    element = dtype(name)
    vectors: int = max(1, 2**element.bits // lanes)
    return vectors if vectors <= (4 if lanes >= 16 or not element.is_integer else 2) else 0


def ways(name: str, table: bool, lanes: int) -> tuple[str, ...]:
    """Return the ways to values of the dtype ``name``, or to those of a ``table``."""
    if not table_vectors(name, lanes):
        return (COMPUTED,)
    return (SHUFFLED, COMPUTED) if dtype(name).is_integer and not table else (SHUFFLED,)


@dataclass(frozen=True, kw_only=True)
class Decoding(CodeValues):
    """Decodes words ``w0``, ``w1``, ... of ``lanes`` lanes into values of codes, which are looked
    up in registers if they are ``shuffled``."""

    lanes: int
    shuffled: bool

    @cached_property
    def vectors(self) -> int:
        """The number of vectors that hold the table; 0 if it is not in registers."""
        return table_vectors(self.name, self.lanes) if self.shuffled else 0

    @property
    def raised(self) -> bool:
        """True if values are whole numbers that are decoded as fractions of powers of two."""
        return super().raised and not self.shuffled

    @property
    def folds_zero(self) -> bool:
        """True if the zero point is subtracted in the table, or together with 2**23."""
        if self.raised or self.table or self.zero is None:
            return super().folds_zero
        return self.vectors > 0

    @property
    def needs_memory(self) -> bool:
        """True if values are read from an array, one by one."""
        return self.table and not self.vectors

    @cached_property
    def values(self) -> np.ndarray:
        """The values by code, if the type gives them."""
        return (dtype(self.name).values - (self.zero or 0.0)).astype(np.float32)

    # -- C -----------------------------------------------------------------------------------------

    def prelude(self, isa: str) -> str:
        """Return the C definitions that kernels share, behind those of
        :mod:`spaces.cpu.vectors.simd`."""
        values = {"LANES": self.lanes, "TOP": 30 - (self.lanes - 1).bit_length()}
        text = repeated(isa) + filled_in(_TEXT, values)
        lanes, halves = self.lanes, self.lanes // 2
        for name, first in (("low", 0), ("high", halves)):
            own = range(first, first + halves)
            text += _shuffle(name, [*own, *(lanes + lane for lane in own)])
        text += _shuffle("even", range(0, 2 * lanes, 2)) + _shuffle("odd", range(1, 2 * lanes, 2))
        for word in (0, 2):
            order = [4 * lane + w for w in (word, word + 1) for lane in range(halves)]
            text += _shuffle(f"code_words{word}", order)
        each = ", ".join(str(lane // 4) for lane in range(lanes))
        text += _EACH.replace("@ORDER@", each)
        if not (self.vectors or self.table or dtype(self.name).is_integer):
            text += self._fields()
        return text

    def declared(self) -> Lines:
        """Return the C declarations of the vectors that hold the table, loaded from an array
        ``table``, which is declared too if its entries are known here."""
        if not self.vectors:
            return []
        repeats = max(1, self.lanes // self.codes)
        known = []
        if not self.table:
            entries = ", ".join(literal(v) for v in [*self.values] * repeats)
            known = [f"static const float table[] = {{{entries}}};"]
        loads = (
            f"const vf table{n} = tw_load_float32(table + {n * self.lanes});"
            for n in range(self.vectors)
        )
        return [*known, *loads]

    def words(self, place: str, band: str) -> Lines:
        """Return the C declarations of the words of a band of lanes, whose tile is at ``place``."""
        lines: Lines = []
        for first, count in word_groups(self.bits):
            start = f"{place} + {128 * first} + {band} * {4 * count * self.lanes}"
            if count == 1:
                lines.append(f"const vu w{first} = tw_code_words({start});")
                continue
            step = 4 * self.lanes
            loaded = [f"v{first + n}" for n in range(count)]
            lines += [
                f"const vu {v} = tw_code_words({start} + {n * step});" for n, v in enumerate(loaded)
            ]
            lines += _two(first, loaded) if count == 2 else _four(first, loaded)
        return lines

    def value(self, slot: Slot, code: int) -> str:
        """Return the C expression of the values of the first or second ``code`` of the pairs in a
        slot."""
        if self.vectors:
            given = ", ".join(f"table{n}" for n in range(self.vectors))
            return f"tw_entries{self.vectors}({given}, {self.code(slot, code, masked=False)})"
        if self.needs_memory:
            return f"tw_looked_up(table, {self.code(slot, code)})"
        if not dtype(self.name).is_integer:
            return f"tw_code_value({self.code(slot, code)})"
        return self._lowered(slot, code)

    def _lowered(self, slot: Slot, code: int) -> str:
        """Return the C expression of whole numbers, which stay at their place in a word: they
        count ones in the fraction of a power of two, which is subtracted."""
        place, masked = 0, self.code(slot, code)
        if len(slot) == 1:
            place, word = slot[0].place, f"w{slot[0].word}"
            half = f"({word} >> 16)" if code else word
            masked = f"({half} & {(self.codes - 1) << place:#x})"
        raised = f"(vf)({masked} ^ {RAISED_BITS - (place << 23) | self.sign << place:#x})"
        return f"({raised} - {literal(self.lowered_by - RAISED + RAISED / 2**place)})"

    def _fields(self) -> str:
        """Return the C text of ``tw_code_value``, which assembles a float from sign, exponent and
        fraction."""
        if self.name == POWERS:
            return _POWERS
        return self.of_fields(_FIELDS, _NAN, _INFINITE)


def _two(first: int, loaded: Lines) -> Lines:
    """Return the C declarations of two words for each lane, which are adjacent in two vectors."""
    given = ", ".join(loaded)
    return [f"const vu w{first} = tw_even({given}), w{first + 1} = tw_odd({given});"]


def _four(first: int, loaded: Lines) -> Lines:
    """Return the C declarations of four words for each lane, which are adjacent in four vectors."""
    a, b, c, d = loaded
    lines = []
    for word in (0, 2):
        one, other = f"p{first + word}", f"p{first + word + 1}"
        lines += [
            f"const vu {one} = tw_code_words{word}({a}, {b});",
            f"const vu {other} = tw_code_words{word}({c}, {d});",
            f"const vu w{first + word} = tw_low({one}, {other});",
            f"const vu w{first + word + 1} = tw_high({one}, {other});",
        ]
    return lines


def _shuffle(name: str, order: Iterable[int]) -> str:
    """Return the C text of a function of two vectors of words that returns the given lanes of
    both."""
    text = "static inline vu tw_@NAME@(vu a, vu b) { return (vu)tw_shuffle(a, b, @ORDER@); }\n"
    return filled_in(text, {"NAME": name, "ORDER": ", ".join(map(str, order))})


_TEXT = """\
typedef vu vu_any __attribute__((aligned(1), may_alias));
static inline vu tw_code_words(const unsigned char *p) { return *(const vu_any *)p; }
static inline vf tw_whole(vi x) { return __builtin_convertvector(x, vf); }
static inline vf tw_either(vi mask, vf a, vf b) {
  return (vf)((mask & (vi)a) | (~mask & (vi)b));
}
static inline vf tw_looked_up(const float *table, vu i) {
  vf x;
  for (int lane = 0; lane < @LANES@; lane++) x[lane] = table[i[lane]];
  return x;
}
#ifdef __clang__
static inline vf tw_entries1(vf a, vu i) {
  vf x;
  for (int lane = 0; lane < @LANES@; lane++) x[lane] = a[i[lane] % @LANES@];
  return x;
}
static inline vf tw_entries2(vf a, vf b, vu i) {
  return tw_either((vi)(i << (@TOP@ + 1)) < 0, tw_entries1(b, i), tw_entries1(a, i));
}
#else
static inline vf tw_entries1(vf a, vu i) { return __builtin_shuffle(a, (vi)i); }
static inline vf tw_entries2(vf a, vf b, vu i) { return __builtin_shuffle(a, b, (vi)i); }
#endif
static inline vf tw_entries4(vf a, vf b, vf c, vf d, vu i) {
  return tw_either((vi)(i << @TOP@) < 0, tw_entries2(c, d, i), tw_entries2(a, b, i));
}
"""

_EACH = """\
static inline vf tw_each_four(const float *p) {
  const vf x = tw_repeated(p);
  return tw_shuffle(x, x, @ORDER@);
}
"""

# The size is the code without its sign; one below the least normal number is a multiple of a unit.
_FIELDS = """\
static inline vf tw_code_value(vu code) {
  const vu size = code & (@SIZES@ - 1);
  const vf normal = (vf)((size << @UP@) + @BASE@), small = tw_whole((vi)size) * @UNIT@;
  vf x = tw_either((vi)(size < @NORMAL@), small, normal);
@SPECIAL@  return (vf)((vu)x | ((code & @SIZES@) << @SIGN@));
}
"""
_NAN = "  x = tw_either((vi)(size == @FROM@), (vf)((vu){0} + 0x7fc00000), x);\n"
_INFINITE = "  x = tw_either((vi)(size >= @FROM@), (vf)(size << @UP@ | 0x7f800000), x);\n"

_POWERS = """\
static inline vf tw_code_value(vu code) {
  const vu bits = code << 23;
  const vu none = (vu)(code == 0) & 0x400000, last = (vu)(code == 255) & 0x400000;
  return (vf)(bits | none | last);
}
"""
