"""The C of the keys that a block meets: all of them, or one of several parts."""

from __future__ import annotations

from dataclasses import dataclass

from tilewright.spaces.algebra.integers import ceil_div

KEYS = "keys_given"
"""The C variable of the number of keys, where calls give it."""
_PART = "part_keys"


@dataclass(frozen=True)
class KeyParts:
    """Keys in ``splits`` parts of as many whole tiles of ``tile`` keys each; the last ones may be
    shorter, or empty. There are ``count`` keys, or at most so many if ``given`` is the C expression
    of the number that a call gives."""

    count: int
    tile: int
    splits: int
    given: str = ""

    @property
    def declared(self) -> list[str]:
        """The C variables that :meth:`span` reads, beside ``part``."""
        if not self.given:
            return []
        whole = self.splits * self.tile
        part = f"const long {_PART} = ({KEYS} + {whole - 1}) / {whole} * {self.tile};"
        return [f"const long {KEYS} = {self.given};", *([part] if self.splits > 1 else [])]

    @property
    def span(self) -> tuple[str, str]:
        """The first key of the C variable ``part``, and the one after its last; of all keys if
        these are not split."""
        if self.splits == 1:
            return "0", KEYS if self.given else f"{self.count}"
        if self.given:
            return f"part * {_PART}", f"tw_least({KEYS}, (part + 1) * {_PART})"
        keys = ceil_div(ceil_div(self.count, self.tile), self.splits) * self.tile
        return f"part * {keys}L", f"tw_least({self.count}L, (part + 1) * {keys}L)"
