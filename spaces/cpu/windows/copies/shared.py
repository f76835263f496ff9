"""Copies of operands that workers make together in the workspace of a call, line by line."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import worker_function
from tilewright.spaces.cpu.vectors.simd import C_TYPES
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class SharedCopy(ABC):
    """A copy of an operand; abstract."""

    operand: Array

    @property
    @abstractmethod
    def lines(self) -> int:
        """The number of lines."""

    @property
    @abstractmethod
    def length(self) -> int:
        """The number of elements of a line."""

    @property
    def bytes(self) -> int:
        """The number of bytes of the whole copy."""
        return self.lines * self.length * self.operand.element.bytes

    @abstractmethod
    def copied(self, at: Sequence[Index]) -> list[str]:
        """Return the C text that copies the line of an index from the operand ``from`` to the copy
        ``to``, perhaps by a ``table``."""

    @property
    def table(self) -> Array | None:
        """The table that is read; None if there is none."""
        return None

    def function(self, name: str, arrays: Sequence[str], start: int, workers: int) -> list[str]:
        """Return the C function ``name(context, worker)`` that makes one worker's share of the
        copy.

        It reads the call's buffers, which are named by ``arrays``, and writes from byte ``start``
        of the workspace on; the lines are shared by ``workers``.
        """
        c_type, table = C_TYPES[self.operand.dtype], self.table
        worker = index("worker", workers)
        shares = spatial(workers) * repeat(ceil_div(self.lines, workers))
        read = [f"const int *table = call->buffers[{arrays.index(table.name)}];"] if table else []
        lines = [
            f"const {c_type} *from = call->buffers[{arrays.index(self.operand.name)}];",
            *read,
            f"{c_type} *to = ({c_type} *)((char *)call->workspace + {start});",
            *shares.emit(worker, self.copied, extents=(self.lines,), prefix="n"),
        ]
        return worker_function(name, lines)
