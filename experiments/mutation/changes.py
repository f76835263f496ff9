"""One small change of a source text."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, order=True)
class Change:
    """Bytes ``start`` to ``end`` of a file become ``after``; ``kind`` says what that changes."""

    start: int
    end: int
    kind: str
    after: str

    def apply(self, source: bytes) -> bytes:
        """Return the text with the change in it."""
        return source[: self.start] + self.after.encode() + source[self.end :]

    def before(self, source: bytes) -> str:
        """Return the text that goes."""
        return source[self.start : self.end].decode()

    def line(self, source: bytes) -> int:
        """Return the number of the line where the change begins, from 1."""
        return source.count(b"\n", 0, self.start) + 1
