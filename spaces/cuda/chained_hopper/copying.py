"""The launch that transposes an 8-bit matrix of a chain, before the chain's own launches.

The copy lies behind the workspace of the chain's own kernels. The first of these may begin while
the copy is made, and waits for it (programmatic dependent launch).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cuda.chained_hopper.fetching.transposing import NAME, WARPS, TransposedCopy
from tilewright.spaces.cuda.target import WARP
from tilewright.spaces.kernel import WORKSPACE, Argument, Buffer, Call, Launch

ALIGNMENT = 128
"""Alignment of the copy in bytes."""
THREADS = WARPS * WARP
"""Threads of a block that copies."""


@dataclass(frozen=True)
class Copying:
    """The ``transposed`` copy for a call whose other kernels have ``own`` bytes of workspace."""

    transposed: TransposedCopy
    arguments: tuple[Argument, ...]
    own: int

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the whole workspace."""
        return self._start + self.transposed.array.bytes

    @property
    def _start(self) -> int:
        return int(round_up(self.own, ALIGNMENT))

    def launches(self, entry: str, others: Sequence[Launch]) -> tuple[Launch, ...]:
        """Return the launch of the function ``entry`` that copies, then the ``others``.

        The first of the others also takes the copy as an argument.
        """
        call = Call("", self.arguments, self.own)
        copy = Buffer(NAME, WORKSPACE, self.transposed.array.bytes, self._start)
        (first, *further) = (replace(o, buffers=call.buffers(o)) for o in others)
        (matrix,) = (b for b in first.buffers if b.inside == self.transposed.read.name)
        copying = Launch(
            (self.transposed.blocks, 1, 1), (THREADS, 1, 1), entry=entry, buffers=(matrix, copy)
        )
        taking = replace(first, buffers=(*first.buffers, copy), early=True)
        return (copying, taking, *further)
