"""The order in which codes of 1 to 8 bits are stored: one for all schedules, targets and rows.

A matrix of codes ``q[row, depth]`` is cut into tiles of 16 rows and 64 of the depth, and tiles of
one part of the depth are neighbours: ``[depth / 64][rows / 16][128 * bits bytes]``. A tile is the
left operand of ``mma.m16n8k16`` (and a quarter of that of ``wgmma``) for four steps of the depth:
lane ``4 * g + t`` has, for each ``step`` of 8 of the depth and each ``half`` of the rows, the two
codes at row ``g + 8 * half`` and depth ``8 * step + 2 * t`` and the next.

A lane has as many words of 32 bits as a code has bits. The first code of a pair is in the low half
of a word, the second at the same place in the high half. A half has whole codes from its lowest bit
up, as many as fit; what is left at the tops of the halves makes the last codes, so that no bit is
spare. Words lie four of each lane at a time, then two, then one, as many as make up their number.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache

ROWS, DEPTH, LANES = 16, 64, 32
"""Rows and depth of a tile, and the lanes that share it."""
STEPS, HALVES = 8, 2
"""Steps of 8 of a tile's depth, and halves of its rows."""
FRACTION = 7
"""Bits of fraction of bfloat16, into which a GPU moves several codes at once."""


@dataclass(frozen=True)
class Piece:
    """Neighbouring bits of a code: ``bits`` from bit ``place`` of each half of word ``word``, which
    are the code's bits from ``bit`` on."""

    word: int
    place: int
    bits: int
    bit: int


Slot = tuple[Piece, ...]
"""The place of a pair of codes: one piece if they are whole."""


def tile_bytes(bits: int) -> int:
    """Return the bytes of a tile of codes."""
    return ROWS * DEPTH * bits // 8


def word_groups(bits: int) -> list[tuple[int, int]]:
    """Return how a lane's words lie: the first of each group, and how many are side by side."""
    groups, first = [], 0
    for count in (4, 4) if bits == 8 else (n for n in (4, 2, 1) if bits & n):
        groups.append((first, count))
        first += count
    return groups


def at_once(bits: int) -> int:
    """Return how many whole codes of a half a GPU moves into a fraction by one shift."""
    return 4 if bits == 1 else max(1, FRACTION // bits)


@lru_cache(maxsize=8)
def slots(bits: int) -> tuple[tuple[Slot, Slot], ...]:
    """Return for each step of the depth where the pairs of both halves of the rows are.

    Both halves of a step have the same place in their words' halves modulo what a GPU extracts at
    once, so that one division of the other factor serves both.
    """
    if bits == 8:
        return tuple(_bytes(step) for step in range(STEPS))
    each = at_once(bits)
    classes: dict[int, list[Slot]] = {}
    for field in range(16 // bits):
        for word in range(bits):
            slot = (Piece(word, field * bits, bits, 0),)
            classes.setdefault(field % each, []).append(slot)
    classes[0] += _remaining(bits)
    pairs = [slot for number in sorted(classes) for slot in classes[number]]
    return tuple((pairs[2 * step], pairs[2 * step + 1]) for step in range(STEPS))


def _bytes(step: int) -> tuple[Slot, Slot]:
    """Return the places of bytes: even steps in bytes 0 and 2 of words, odd ones in 1 and 3."""
    first, second = (Piece(2 * (step // 2) + half, 8 * (step % 2), 8, 0) for half in range(HALVES))
    return (first,), (second,)


def _remaining(bits: int) -> list[Slot]:
    """Return the codes that are made of what is left at the tops of the halves."""
    whole = 16 // bits * bits
    spare = [(word, place) for word in range(bits) for place in range(whole, 16)]
    cut = (spare[first : first + bits] for first in range(0, len(spare), bits))
    return [_joined(places) for places in cut]


def _joined(places: Sequence[tuple[int, int]]) -> Slot:
    """Return the bits of a code at these places as the fewest pieces."""
    pieces: list[Piece] = []
    for bit, (word, place) in enumerate(places):
        last = pieces[-1] if pieces else None
        if last and (last.word, last.place + last.bits) == (word, place):
            pieces[-1] = Piece(word, last.place, last.bits + 1, last.bit)
        else:
            pieces.append(Piece(word, place, 1, bit))
    return tuple(pieces)
