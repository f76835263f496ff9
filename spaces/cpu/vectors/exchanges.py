"""Transposition of as many vectors as each has lanes, in registers.

Groups of as many rows as 128 bits have elements are transposed within the 128-bit parts of vectors,
where an exchange is one cheap instruction; then the parts change places (as in Intel's Optimization
Reference Manual, "8x8 Matrix Transpose Using AVX").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

PART_BYTES = 16
"""Bytes of the part of a vector within which an exchange is cheap."""


@dataclass(frozen=True)
class Exchanges:
    """Collects the C ``steps`` that transpose ``lanes`` vectors of ``lanes`` elements of ``size``
    bytes."""

    lanes: int
    size: int
    vector: str
    shuffle: str
    steps: list[str] = field(default_factory=list)

    @property
    def part(self) -> int:
        """The number of elements of a part."""
        return PART_BYTES // self.size

    def transposed(self, rows: Sequence[str]) -> list[str]:
        """Add the steps that transpose the vectors ``rows``, and return the C variables of the
        columns."""
        groups = [
            self.transposed_within(rows[g : g + self.part]) for g in range(0, self.lanes, self.part)
        ]
        columns = [""] * self.lanes
        for c in range(self.part):
            for part, name in enumerate(self._exchanged([group[c] for group in groups])):
                columns[part * self.part + c] = name
        return columns

    def transposed_within(self, rows: Sequence[str]) -> list[str]:
        """Add the steps that transpose, within each part, as many vectors as a part has elements.

        Each stage interleaves halves of each vector in the first half of them with those of its
        counterpart in the second half. Return the C variables of the results.
        """
        half, parts = self.part // 2, range(0, self.lanes, self.part)
        low = [x for s in parts for k in range(half) for x in (s + k, self.lanes + s + k)]
        for _ in range(half.bit_length()):
            pairs = zip(rows[:half], rows[half:], strict=True)
            masks = (low, [lane + half for lane in low])
            rows = [self._shuffled(a, b, mask) for a, b in pairs for mask in masks]
        return list(rows)

    def _exchanged(self, vectors: list[str]) -> list[str]:
        """Add the steps that make part ``k`` of vector ``g`` part ``g`` of vector ``k``, and return
        the C variables of the results."""
        parts = self.lanes // self.part
        distance = parts // 2
        while distance:
            for g in (g for g in range(parts) if not g & distance):
                a, b = vectors[g], vectors[g + distance]
                for move, place in ((0, g), (distance, g + distance)):
                    mask = [
                        self.part * (k + move if not k & distance else parts + k - distance + move)
                        + i
                        for k in range(parts)
                        for i in range(self.part)
                    ]
                    vectors[place] = self._shuffled(a, b, mask)
            distance //= 2
        return vectors

    def _shuffled(self, a: str, b: str, mask: list[int]) -> str:
        name, lanes = f"s{len(self.steps)}", ", ".join(map(str, mask))
        self.steps.append(f"  const {self.vector} {name} = {self.shuffle}({a}, {b}, {lanes});")
        return name
