"""The CUDA C++ that turns words of codes into numbers, one at a time.

Whole numbers and floats are decoded in registers, entries of a table are found in shared memory.
"""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.low_bit.decoding import CodeValues, literal
from tilewright.spaces.low_bit.order import Slot, word_groups
from tilewright.spaces.low_bit.values import POWERS

Lines = list[str]


@dataclass(frozen=True, kw_only=True)
class Decoding(CodeValues):
    """The way from words ``w0``, ``w1``, ... of a lane to values of codes; ``table`` is the address
    of a table in shared memory."""

    def helper(self) -> str:
        """C text of ``tw_code_value``, a float of its sign, exponent and fraction; none where
        values are whole numbers or of a table."""
        if self.raised or self.table:
            return ""
        if self.name == POWERS:
            return _POWERS
        return self.of_fields(_FIELDS, _NAN, _INFINITE)

    def loads(self, to: str, place: str) -> Lines:
        """C statements that load a lane's words of the tile at ``place`` into the array ``to``."""
        return [
            f"tw::load_stream<{count}, 0>({to} + {first}, "
            f"(const u32 *)({place} + {128 * first}) + lane * {count});"
            for first, count in word_groups(self.bits)
        ]

    def value(self, slot: Slot, code: int) -> str:
        """C expression: the value of the pair's first or second ``code`` in a slot."""
        found = self.code(slot, code)
        if self.table:
            return f"tw::load_shared<float>(table + 4 * {found})"
        if not self.raised:
            return f"tw_code_value({found})"
        raised = f"tw::bits_float({found} ^ {self.raised_bits:#x}u)"
        return raised if self.raises_zero else f"{raised} - {literal(self.lowered_by)}"


_FIELDS = """\
TW_INLINE float tw_code_value(u32 code) {
  const u32 size = code & (@SIZES@u - 1);
  float x = size < @NORMAL@u ? (float)size * @UNIT@ : tw::bits_float((size << @UP@) + @BASE@u);
@SPECIAL@  return tw::bits_float(tw::float_bits(x) | (code & @SIZES@u) << @SIGN@);
}
"""
_NAN = "  if (size == @FROM@u) x = tw::bits_float(0x7fc00000u);\n"
_INFINITE = "  if (size >= @FROM@u) x = tw::bits_float(size << @UP@ | 0x7f800000u);\n"

_POWERS = """\
TW_INLINE float tw_code_value(u32 code) {
  return tw::bits_float(code << 23 | (code == 0 || code == 255 ? 0x400000u : 0u));
}
"""
