"""The rules by which codes become numbers of 32 bits, which all targets share.

Whole numbers become the lowest bits of the fraction of 2**23, which is subtracted together with a
whole zero point. Other floats are put together of their fields.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np

from tilewright.spaces.dtypes import dtype
from tilewright.spaces.low_bit.order import Slot
from tilewright.spaces.low_bit.values import split_of

RAISED, RAISED_BITS = 2.0**23, 0x4B000000
"""The number whose fraction's lowest bits count ones, and its bits."""
MOST_ZERO = 2**16
"""The zero points below it are exact beside :data:`RAISED`."""


@dataclass(frozen=True, kw_only=True)
class CodeValues:
    """The values of codes of the dtype ``name``.

    With a ``table`` the values are entries of an array of floats that the kernel fills; they are
    the dtype's own otherwise, less a ``zero`` that is known. Zero points that are not known may be
    ``whole`` numbers of up to 8 bits.
    """

    name: str
    table: bool
    zero: float | None
    whole: bool = False

    @property
    def bits(self) -> int:
        """Bits of a code."""
        return dtype(self.name).bits

    @property
    def codes(self) -> int:
        """The number of codes that there are."""
        return int(2**self.bits)

    @property
    def raised(self) -> bool:
        """Tell whether values are whole numbers that come as fractions of 2**23."""
        return dtype(self.name).is_integer and not self.table

    @property
    def raised_by(self) -> float:
        """The number by which raised values are larger than those of the codes."""
        return RAISED + self.sign

    @property
    def raised_bits(self) -> int:
        """The bits that make a raised value of a code, where they differ."""
        return RAISED_BITS | self.sign

    @property
    def sign(self) -> int:
        """The bit of a code that is its sign; 0 if it has none."""
        return 0 if self.name.startswith("uint") else 2 ** (self.bits - 1)

    @property
    def folds_zero(self) -> bool:
        """Tell whether the zero point is in what raised values are lowered by."""
        if self.zero is None or not self.raised:
            return False
        return self.zero.is_integer() and abs(self.zero) < MOST_ZERO

    @property
    def lowered_by(self) -> float:
        """The number that is subtracted of raised values."""
        known = self.zero if self.zero is not None and self.folds_zero else 0.0
        return self.raised_by + known

    @property
    def raises_zero(self) -> bool:
        """Tell whether zero points are raised like values."""
        return self.raised and self.whole

    def of_fields(self, text: str, nan: str, infinite: str) -> str:
        """Fill a C text with the numbers of :class:`Fields`, for floats that have a sign.

        ``nan`` stands for ``@SPECIAL@`` where one size is no number, ``infinite`` where one is
        infinite and those beyond are no numbers; the size is ``@FROM@``.
        """
        fields = fields_of(self.name)
        special, first = "", None
        if fields.nan is not None:
            special, first = nan, fields.nan
        elif fields.infinite is not None:
            special, first = infinite, fields.infinite
        values = {
            "SPECIAL": special,
            "FROM": first,
            "SIZES": fields.sizes,
            "UP": fields.up,
            "BASE": fields.base,
            "UNIT": literal(fields.unit),
            "NORMAL": fields.normal,
            "SIGN": 32 - self.bits,
        }
        return filled_in(text, values)

    def code(self, slot: Slot, code: int, masked: bool = True) -> str:
        """C expression of words ``w0``, ``w1``, ...: the first or second ``code`` of the pair in a
        slot in the lowest bits, with anything above it unless it is masked."""
        parts = []
        for piece in slot:
            shift = piece.place + 16 * code
            moved = f"w{piece.word} >> {shift}" if shift else f"w{piece.word}"
            if shift + piece.bits < 32 and (masked or len(slot) > 1):
                moved = f"(({moved}) & {2**piece.bits - 1})"
            parts.append(f"({moved} << {piece.bit})" if piece.bit else f"({moved})")
        return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


@dataclass(frozen=True)
class Fields:
    """The numbers by which a float with a sign is put together of its fields: a ``size`` is the
    code without its sign, and one below the least normal number is a multiple of ``unit``."""

    sizes: int
    """The sizes there are; also the bit of the sign."""
    up: int
    """Bits by which the size is shifted to the left in a float32."""
    base: int
    """The bits that are added to those of a normal number."""
    unit: float
    normal: int
    """The size of the least normal number."""
    nan: int | None
    """The size that is no number, of a dtype that has one alone."""
    infinite: int | None
    """The size that is infinite, if there is one: those beyond are no numbers."""


def fields_of(name: str) -> Fields:
    """Return the numbers for a float that has a sign."""
    split = split_of(name)
    assert split is not None
    exponent, fraction = split
    bias, sizes = 2 ** (exponent - 1) - 1, 2 ** (exponent + fraction)
    is_fn = name.endswith("fn")
    return Fields(
        sizes=sizes,
        up=23 - fraction,
        base=(127 - bias) << 23,
        unit=2.0 ** (1 - bias - fraction),
        normal=2**fraction,
        nan=sizes - 1 if is_fn else None,
        infinite=sizes - 2**fraction if dtype(name).bits == 8 and not is_fn else None,
    )


def literal(value: float) -> str:
    """Return C text that is exactly a float; one that is not finite needs a compiler for CPUs."""
    if np.isnan(value):
        return '__builtin_nanf("")'
    if np.isinf(value):
        return f"{'-' if value < 0 else ''}__builtin_inff()"
    return f"{float(value).hex()}f"


def filled_in(text: str, values: Mapping[str, object]) -> str:
    """Return a text in which each ``@NAME@`` is a value."""
    for name, value in values.items():
        text = text.replace(f"@{name}@", str(value))
    return text
