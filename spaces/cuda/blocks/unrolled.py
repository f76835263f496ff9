"""Task mappings as CUDA lines with unrolled loops, as indices of registers must be constants."""

from __future__ import annotations

from collections.abc import Callable, Sequence

from tilewright.spaces.algebra.index import Index
from tilewright.spaces.algebra.mapping import TaskMapping

THREAD = "threadIdx.x"
TURNS = 32

Body = Callable[[tuple[Index, ...]], Sequence[str]]


def unrolled(
    mapping: TaskMapping,
    worker: int | str,
    body: Body,
    prefix: str,
    extents: Sequence[int | str | None] | None = None,
    integer: str = "int",
) -> list[str]:
    """Print ``body`` for each task of ``worker``; loops of up to 32 turns are unrolled.

    Indices are of C type ``integer``.
    """
    return mapping.emit(
        worker, body, "cuda", extents=extents, prefix=prefix, unroll=TURNS, integer=integer
    )
