"""What lowering gives: source text and all that is needed to build and call it."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from spaces.workloads.array import Array


@dataclass(frozen=True)
class Launch:
    """How a CUDA kernel is launched: grid, block and cluster in (x, y, z), shared bytes."""

    grid: tuple[int, int, int]
    block: tuple[int, int, int]
    cluster: tuple[int, int, int] = (1, 1, 1)
    shared_bytes: int = 0


@dataclass(frozen=True)
class Kernel:
    """One generated kernel: derived from a schedule, never stored in a database.

    ``source`` is a fragment in ``language`` that defines ``entry``; ``prelude`` holds what
    fragments of one translation unit can share (types, vector maths): a builder that puts many
    kernels into one unit writes each distinct prelude once, and ``entry`` differs by schedule.
    ``arguments`` are the workload's operands in the order the entry takes them; the last
    ``outputs`` of them are written, the others read.
    ``workspace_bytes`` of 64-byte aligned scratch memory are handed to each call. The first
    ``workspace_zeroed`` bytes of them are zero before a kernel's first call, and it must leave
    them so; the others hold anything.
    ``metadata`` carries what only one target needs (TMA descriptors of a Hopper kernel, say).
    """

    language: str
    entry: str
    prelude: str
    source: str
    arguments: tuple[Array, ...]
    workspace_bytes: int = 0
    workspace_zeroed: int = 0
    launch: Launch | None = None
    metadata: Mapping[str, object] = field(default_factory=dict, hash=False)
    outputs: int = 1

    @property
    def read(self) -> tuple[Array, ...]:
        """The arrays that it reads."""
        return self.arguments[: -self.outputs]

    @property
    def written(self) -> tuple[Array, ...]:
        """The arrays that it writes."""
        return self.arguments[-self.outputs :]

    @property
    def text(self) -> str:
        """The whole translation unit of this kernel alone."""
        return f"{self.prelude}\n{self.source}"

    @property
    def digest(self) -> str:
        """SHA-256 of the text, in hexadecimal: names the binary in caches."""
        return hashlib.sha256(self.text.encode()).hexdigest()
