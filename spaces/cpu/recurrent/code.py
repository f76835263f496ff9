"""The C of a state that is carried along positions: workers share rows, and groups of lanes.

As task mappings:

    spatial(workers) * repeat(items of a worker)      of rows times groups of vectors

Each item walks along all positions, ``positions`` at a time. A worker has its state in the
workspace, where it stays near the core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index, index, variable
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import (
    ARRAY_TYPES,
    PAGE,
    buffer_variables,
    entry_function,
    worker_function,
)
from tilewright.spaces.cpu.recurrent.position import Positions, is_ahead
from tilewright.spaces.derivation.recurrent.view import Recurrence
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import C
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class RecurrentCode:
    """The kernel called ``entry``; ``operands`` are its arguments in order.

    A state has ``vectors`` of ``lanes`` at each point of the inner axes, and passes through
    ``positions`` at once.
    """

    view: Recurrence
    operands: Sequence[Array]
    vectors: int
    positions: int
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
    def _state(self) -> int:
        """Vectors of a state, without its scales."""
        return self.view.extent(*self.view.inner) * self.vectors

    @property
    def _scales(self) -> int:
        """The vectors of largest exponents so far."""
        view = self.view
        if view.decay is None:
            return 0
        if is_ahead(view):
            return self._row_of_points
        inner = not view.decay.axes.isdisjoint(view.inner)
        across = view.lane in view.decay.axes
        return (view.extent(*view.inner) if inner else 1) * (self.vectors if across else 1)

    @property
    def _row_of_points(self) -> int:
        """The vectors that all points of the inner axes are."""
        *others, last = self.view.inner
        return self.view.extent(*others) * ceil_div(self.view.extent(last), self.lanes)

    @property
    def _powers(self) -> int:
        """The vectors of powers that are computed ahead."""
        return 3 * self.positions * self._row_of_points if is_ahead(self.view) else 0

    @property
    def _state_bytes(self) -> int:
        vector = self.lanes * dtype(self.element).bytes
        return round_up((self._state + self._scales + self._powers) * vector, PAGE)

    @cached_property
    def _items(self) -> tuple[int, ...]:
        rows = [self.view.extent(axis) for axis in self.view.rows]
        return (*rows, ceil_div(self.view.extent(self.view.lane), self.vectors * self.lanes))

    @cached_property
    def _names(self) -> Mapping[str, str]:
        return {operand.name: f"b{i}" for i, operand in enumerate(self.operands)}

    def _rows(self, name: str) -> list[str]:
        written = {output.name for output in self.view.outputs}
        every = prod(self._items)
        own = ARRAY_TYPES[self.element]
        state = f"(char *)call->workspace + {self._state_bytes}L * worker"
        tasks = spatial(self.workers) * repeat(ceil_div(every, self.workers))
        return worker_function(
            name,
            [
                *buffer_variables(self.operands, self._names, written),
                f"vf *restrict s = (void *)({state});",
                *([f"vf *restrict m = s + {self._state};"] if self._scales else []),
                *([f"{own} *restrict h = (void *)(m + {self._scales});"] if self._powers else []),
                *tasks.emit(
                    index("worker", self.workers), self._item, extents=(every,), prefix="n"
                ),
            ],
        )

    def _item(self, at: Sequence[Index]) -> list[str]:
        number = index("item", prod(self._items))
        walk = spatial(*self._items).emit(number, self._walk)
        return [f"const long item = {at[0]};", *walk]

    def _walk(self, at: Sequence[Index]) -> list[str]:
        """Write the walk along all positions in one row, for one group of lanes."""
        *rows, group = at
        extent, count = self.view.extent(self.view.position), self.positions
        whole = extent // count * count
        lines = C.loop("i", self._state, ["s[i] = tw_set(0);"])
        if self._scales:
            lines += C.loop("i", self._scales, ["m[i] = tw_set(-TW_LARGEST);"])
        lines += C.loop("t", whole, self._at_once(rows, group, count), step=count)
        if whole < extent:
            lines += C.loop("t", extent, self._at_once(rows, group, 1), first=whole)
        return lines

    def _at_once(self, rows: Sequence[Index], group: Index, count: int) -> list[str]:
        """Write so many positions, of which the state comes to the one number ``t`` first."""
        view, lane = self.view, self.view.extent(self.view.lane)
        extent = view.extent(view.position)
        known = {
            **dict(zip(view.rows, rows, strict=True)),
            **{axis: variable(f"d{n}") for n, axis in enumerate(view.inner)},
        }
        turns = [variable("t") + u for u in range(count)]
        if view.backwards:
            turns = [turn * -1 + (extent - 1) for turn in turns]
        at = [{**known, view.position: turn} for turn in turns]
        first = group * (self.vectors * self.lanes)
        limit = lane if lane % self.lanes else None
        writer = Positions(
            view, self._names, at, first, self.vectors, self.lanes, limit, self.element
        )
        return writer.write()
