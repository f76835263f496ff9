"""The CUDA C++ that turns pairs of codes into pairs of 16-bit floats, operands of ``mma.sync``.

A pair is decoded at once, each code in its half of a register, and exactly. Whole numbers become
bits of the fraction of a number (128 or 1024) that a fused multiply-add takes off, together with a
zero point that is known. The fields of floats are moved to where a 16-bit float has them, and a
multiplication by a power of two corrects the exponent, subnormal numbers included.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from tilewright.spaces.cuda.abi import C_TYPES
from tilewright.spaces.cuda.low_bit.decoding import Decoding
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.low_bit.decoding import fields_of
from tilewright.spaces.low_bit.order import Slot, at_once
from tilewright.spaces.low_bit.quads import Quad, quad_code
from tilewright.spaces.low_bit.values import POWERS, split_of

FRACTIONS = {"bfloat16": 7, "float16": 10}
"""Bits of fraction of the floats that are multiplied."""
BIASES = {"bfloat16": 127, "float16": 15}
BYTE = 8
MINUS_ZERO = 0x80008000
"""A pair of negative zeros: no number changes where they are added."""
TOP = 0x00800080
"""The highest bits of a pair of bytes."""


@dataclass(frozen=True)
class PairDecoding:
    """The way from words ``w0``, ``w1``, ... of a lane to pairs of the dtype ``kind``."""

    decoding: Decoding
    kind: str

    def why_not(self, zero_points: bool) -> str | None:
        """Say why values less their zero points, if there are any, are no numbers of 16 bits; None
        if they are."""
        given, name = self.decoding, self.decoding.name
        if given.table or name == POWERS:
            return f"entries of a table, and {POWERS}, are not decoded in pairs"
        if zero_points and given.zero is None and not (given.whole and dtype(name).is_integer):
            return "zero points are not whole numbers of up to 8 bits, or codes are none"
        zeros = (0.0, -128.0, 255.0) if given.whole else (0.0, given.zero or 0.0)
        if all(is_exact(dtype(name).values - zero, self.kind) for zero in zeros):
            return None
        return f"values of {name} less their zero points are not exact in {self.kind}"

    @property
    def c_type(self) -> str:
        """The C type of an element."""
        return C_TYPES[self.kind]

    # -- numbers -----------------------------------------------------------------------------------

    def both(self, value: float) -> str:
        """C text of a pair of one number, which is exact in 16 bits."""
        bits = bits_of(value, self.kind)
        return f"{bits << 16 | bits:#x}u"

    def fused(self, pair: str, by: str, plus: str) -> str:
        """C expression: a pair multiplied, plus another."""
        return f"tw::fused2<{self.c_type}>({pair}, {by}, {plus})"

    def scaled(self, pair: str, by: str) -> str:
        """C expression: a pair multiplied."""
        return self.fused(pair, by, f"{MINUS_ZERO:#x}u")

    def _less(self, pair: str, known: float) -> str:
        """C expression: a pair less a number that is known."""
        return self.fused(pair, self.both(1.0), self.both(-known)) if known else pair

    # -- decoding ----------------------------------------------------------------------------------

    def pair(self, slot: Slot, larger: str | None = None) -> str:
        """C expression: the pair in a slot, less a zero point that is known. A variable may have
        what :meth:`larger` says."""
        if not dtype(self.decoding.name).is_integer:
            return self._less(self._float(slot), self.decoding.zero or 0.0)
        return self._whole(slot, larger) if self.raises else self._byte(slot)

    @property
    def raises(self) -> bool:
        """Tell whether codes become bits of the fraction of a larger number, which may be taken off
        their sum instead of each."""
        if not dtype(self.decoding.name).is_integer:
            return False
        return self.decoding.bits <= FRACTIONS[self.kind]

    def raised(self, slot: Slot, at: int, larger: str) -> str:
        """C expression: the pair of whole numbers as bits of the fraction of a ``larger`` number,
        from bit ``at`` up: 2**at times the value, plus :meth:`raised_by`."""
        return f"({moved_bits(slot, at)} ^ {larger})"

    def larger(self, at: int) -> str:
        """C text of the pair of larger numbers, with the sign of codes turned."""
        bits = bits_of(2.0 ** FRACTIONS[self.kind], self.kind) | self.decoding.sign << at
        return f"{bits << 16 | bits:#x}u"

    def raised_by(self, at: int) -> float:
        """Return the number by which such numbers are too large."""
        return 2.0 ** FRACTIONS[self.kind] + self.decoding.sign * 2.0**at

    def _whole(self, slot: Slot, larger: str | None) -> str:
        """Return a pair of whole numbers: their bits are put into the fraction of a larger number,
        which is taken off."""
        at = self.place(slot)
        found, much = self.raised(slot, at, larger or self.larger(at)), self.raised_by(at) / 2.0**at
        zero, by = self.decoding.zero or 0.0, self.both(2.0**-at)
        if is_exact(np.array([much + zero]), self.kind):
            return self.fused(found, by, self.both(-(much + zero)))
        return self._less(self.fused(found, by, self.both(-much)), zero)

    def place(self, slot: Slot) -> int:
        """Return the bit of the fraction where codes stay, so that several need one shift."""
        bits = self.decoding.bits
        if len(slot) > 1 or bits == BYTE:
            return 0
        return int(slot[0].place // bits % at_once(bits) * bits)

    def late_place(self, slot: Slot) -> int:
        """Return the bit of the fraction where codes stay whose sums are corrected: the activations
        are divided instead, which only bfloat16 has exponents enough for."""
        return self.place(slot) if self.kind == "bfloat16" else 0

    def _byte(self, slot: Slot) -> str:
        """Return a pair of bytes in bfloat16. Its fraction has no room for the highest bit, so that
        128 and the lower bits are less 128 or 256."""
        (piece,) = slot
        signed = bool(self.decoding.sign)
        lower = f"({moved_bits(slot, 0, 0x7F)} | {self.both(128.0)})"
        higher = 128.0 if signed else 256.0
        top = f"({moved_bits(slot, 0, 0x80)} ^ {self.both(-higher)})"
        assert piece.bits == BYTE
        known = (self.decoding.zero or 0.0) - (0.0 if signed else 128.0)
        return self._less(self.fused(lower, self.both(1.0), top), known)

    def _float(self, slot: Slot) -> str:
        """Return a pair of floats, whose fields are moved to those of a 16-bit float."""
        fields, bits = fields_of(self.decoding.name), self.decoding.bits
        split = split_of(self.decoding.name)
        assert split is not None
        exponent, digits = split
        up = FRACTIONS[self.kind] - digits
        size = moved_bits(slot, up, fields.sizes - 1)
        sign = moved_bits(slot, 16 - bits, fields.sizes)
        found = f"({size} | {sign})"
        power = BIASES[self.kind] - (2 ** (exponent - 1) - 1)
        if not power:
            return found
        found = self.scaled(found, self.both(2.0**power))
        first = fields.nan if fields.nan is not None else fields.infinite
        if first is None:
            return found
        largest = 2**16 - 2 ** FRACTIONS[self.kind] - 2**15 >> 7
        carried = f"({moved_bits(slot, 0, 0x7F)} + {0x10001 * (fields.sizes - first):#x}u)"
        return f"({found} | ({carried} & {TOP:#x}u) * {largest:#x}u)"


@dataclass(frozen=True)
class ByteDecoding(PairDecoding):
    """The way from words of a lane to quads of whole numbers in bytes that have a sign."""

    @property
    def raises(self) -> bool:
        """Tell that no number is a part of a larger one."""
        return False

    @property
    def flipped(self) -> int:
        """The bits of each code that are turned: those of 8 bits lose what is above 127, and
        others the sign."""
        if self.decoding.bits == BYTE:
            return 0 if self.decoding.sign else 2 ** (BYTE - 1)
        return self.decoding.sign

    @property
    def above(self) -> int:
        """The number by which bytes are larger than values of codes."""
        return -self.flipped if self.decoding.bits == BYTE else self.flipped

    def quad(self, quad: Quad, half: int) -> str:
        """C expression: a quad of a half of the rows."""
        return quad_code(self.decoding.bits, quad, half, self.flipped)


def moved_bits(slot: Slot, up: int, mask: int = 0xFF) -> str:
    """C expression of words ``w0``, ``w1``, ...: the bits of both codes of a slot that ``mask``
    keeps, ``up`` bits above the lowest of each half."""
    parts = []
    for piece in slot:
        kept = mask >> piece.bit & (2**piece.bits - 1)
        if not kept:
            continue
        down = piece.place - piece.bit - up
        moved = f"w{piece.word}"
        if down:
            moved = f"({moved} {'>>' if down > 0 else '<<'} {abs(down)})"
        parts.append(f"({moved} & {0x10001 * (kept << piece.bit + up):#x}u)")
    return parts[0] if len(parts) == 1 else f"({' | '.join(parts)})"


def is_exact(values: Sequence[float] | np.ndarray, kind: str) -> bool:
    """Tell whether all values are numbers of the dtype ``kind``."""
    given = np.asarray(values, np.float64)
    with np.errstate(over="ignore"):
        if kind == "float16":
            return bool(np.array_equal(given.astype(np.float16), given, equal_nan=True))
        wide = given.astype(np.float32)
    cut = (wide.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
    return bool(np.array_equal(cut.astype(np.float64), given, equal_nan=True))


def bits_of(value: float, kind: str) -> int:
    """Return the bits of a number that is exact in the dtype ``kind``."""
    assert is_exact([value], kind), (value, kind)
    if kind == "float16":
        return int(np.float16(value).view(np.uint16))
    return int(np.float32(value).view(np.uint32)) >> 16
