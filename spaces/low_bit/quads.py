"""Four codes of a lane as the bytes of a word: the factors of dot products of bytes.

A quad joins the pairs of codes of two steps of 8 of the depth: bytes 0 and 2 have the first step's,
bytes 1 and 3 the second's. Codes of 1, 2, 4 and 8 bits stand so in their words already, where steps
are chosen well, and need a shift and a mask. Others are put together of two pairs.
"""

from __future__ import annotations

from functools import lru_cache

from tilewright.spaces.low_bit.order import HALVES, STEPS, Slot, slots

Quad = tuple[int, int]
"""The two steps of a quad, in the order of its bytes."""
BYTES, PAIRS = 0x01010101, 0x00010001
"""The lowest bits of a word's bytes, and of its halves."""


@lru_cache(maxsize=64)
def quads(bits: int, steps: int = STEPS) -> tuple[Quad, ...]:
    """Return the quads of a tile, none of which has steps of two of its parts of ``steps`` steps.

    Both halves of the rows have the same.
    """
    found: list[Quad] = []
    for first in range(0, STEPS, steps):
        rest = list(range(first, first + steps))
        for one in tuple(rest):
            other = next((s for s in rest if one in rest and _aligned(bits, one, s)), None)
            if other is not None:
                found.append((one, other))
                rest = [step for step in rest if step not in (one, other)]
        found += zip(rest[::2], rest[1::2], strict=True)
    return tuple(found)


def depths_of(quad: Quad) -> list[int]:
    """Return where the bytes of the four lanes of a column are along a tile's depth."""
    return [8 * quad[byte % 2] + 2 * lane + byte // 2 for lane in range(4) for byte in range(4)]


def quad_code(bits: int, quad: Quad, half: int, flipped: int = 0) -> str:
    """C expression of words ``w0``, ``w1``, ...: the codes of a ``half`` of the rows as bytes, with
    the bits ``flipped`` of each the other way round."""
    first, second = (slots(bits)[step][half] for step in quad)
    if _aligned(bits, *quad):
        piece = first[0]
        codes = _moved(piece.word, piece.place, 0, (2**bits - 1) * BYTES)
    else:
        codes = f"({_pair(first, 0)} | {_pair(second, 8)})"
    return f"({codes} ^ {flipped * BYTES:#x})" if flipped else codes


def _aligned(bits: int, one: int, other: int) -> bool:
    """Tell whether the codes of two steps are bytes of a word, for both halves."""
    for half in range(HALVES):
        first, second = slots(bits)[one][half], slots(bits)[other][half]
        if (len(first), len(second)) != (1, 1) or first[0].word != second[0].word:
            return False
        if second[0].place != first[0].place + 8:
            return False
    return True


def _pair(slot: Slot, at: int) -> str:
    """Return the expression of a pair of codes from bit ``at`` of both halves of a word."""
    return " | ".join(
        _moved(piece.word, piece.place, at + piece.bit, (2**piece.bits - 1) * PAIRS)
        for piece in slot
    )


def _moved(word: int, place: int, to: int, mask: int) -> str:
    """Return the expression of bits of a word, moved from bit ``place`` to bit ``to``."""
    moved = f"w{word}"
    if place != to:
        moved = f"({moved} {'>>' if place > to else '<<'} {abs(place - to)})"
    kept = mask << to
    return moved if kept == 2**32 - 1 else f"({moved} & {kept:#x})"
