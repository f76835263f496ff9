"""The C of a walk with a state: workers share rows, and groups of lanes.

As task mappings:

    spatial(workers) * repeat(items of a worker)      of rows times groups of vectors

Each item walks along all positions. A worker has its state in the workspace, where it stays near
the core.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index, index
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import PAGE, buffer_variables, entry_function, worker_function
from tilewright.spaces.cpu.states.view import StateView
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class StateCode(ABC):
    """The kernel called ``entry``; ``operands`` are its arguments in order. There are ``vectors``
    of ``lanes`` in a group."""

    view: StateView
    operands: Sequence[Array]
    vectors: int
    workers: int
    lanes: int
    element: str
    entry: str

    @property
    def source(self) -> str:
        """The C text of all functions of the kernel, the entry last."""
        name = f"{self.entry}_rows"
        lines = [*self._rows(name), *entry_function(self.entry, {name: self.workers})]
        return "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the states of all workers."""
        return self.workers * self._state_bytes

    @property
    @abstractmethod
    def _size(self) -> int:
        """The vectors of a worker's state, and of what lies behind it."""

    @abstractmethod
    def _walk(self, at: Sequence[Index]) -> list[str]:
        """Write the walk along all positions in one row, for one group of lanes."""

    @property
    def _behind(self) -> list[str]:
        """The declarations of pointers to what lies behind the state ``s``."""
        return []

    @property
    def _limit(self) -> int | None:
        """The elements along lanes; None if all lanes have one."""
        lane = self.view.extent(self.view.lane)
        return lane if lane % self.lanes else None

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {operand.name: f"b{i}" for i, operand in enumerate(self.operands)}

    @property
    def _state_bytes(self) -> int:
        return round_up(self._size * self.lanes * dtype(self.element).bytes, PAGE)

    @cached_property
    def _items(self) -> tuple[int, ...]:
        rows = [self.view.extent(axis) for axis in self.view.rows]
        return (*rows, ceil_div(self.view.extent(self.view.lane), self.vectors * self.lanes))

    def _rows(self, name: str) -> list[str]:
        written = {output.name for output in self.view.outputs}
        every = prod(self._items)
        state = f"(char *)call->workspace + {self._state_bytes}L * worker"
        tasks = spatial(self.workers) * repeat(ceil_div(every, self.workers))
        return worker_function(
            name,
            [
                *buffer_variables(self.operands, self._names, written),
                f"vf *restrict s = (void *)({state});",
                *self._behind,
                *tasks.emit(
                    index("worker", self.workers), self._item, extents=(every,), prefix="n"
                ),
            ],
        )

    def _item(self, at: Sequence[Index]) -> list[str]:
        number = index("item", prod(self._items))
        walk = spatial(*self._items).emit(number, self._walk)
        return [f"const long item = {at[0]};", *walk]
