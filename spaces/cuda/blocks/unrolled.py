"""Task mappings as CUDA lines whose loops the compiler unrolls: what registers are indexed by."""

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
    """Lines of ``body`` for each task of ``worker``, whose indices are of C type ``integer``;
    loops of up to 32 turns are unrolled."""
    return mapping.emit(
        worker, body, "cuda", extents=extents, prefix=prefix, unroll=TURNS, integer=integer
    )
