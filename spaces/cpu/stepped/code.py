"""The C of a walk along steps: workers share rows, and groups of lanes.

As task mappings:

    spatial(workers) * repeat(items of a worker)      of rows times groups of vectors

Each item walks along all steps. A worker has its state in the workspace, where it stays near the
core.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

from tilewright.spaces.algebra.index import Index, index, variable
from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.algebra.mapping import repeat, spatial
from tilewright.spaces.cpu.abi import PAGE, buffer_variables, entry_function, worker_function
from tilewright.spaces.cpu.stepped.places import Places
from tilewright.spaces.cpu.stepped.step import StepWriter
from tilewright.spaces.derivation.stepped.view import SteppedView
from tilewright.spaces.dtypes import dtype
from tilewright.spaces.kernels.text import C
from tilewright.spaces.workloads.array import Array


@dataclass(frozen=True)
class SteppedCode:
    """The kernel called ``entry``; ``operands`` are its arguments in order.

    There are ``vectors`` of ``lanes`` in a group, and the innermost loops are unrolled ``unroll``
    times.
    """

    view: SteppedView
    operands: Sequence[Array]
    vectors: int
    unroll: int
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

    @cached_property
    def _places(self) -> Places:
        return Places(self.view, self.vectors)

    @property
    def _state_bytes(self) -> int:
        return round_up(self._places.size * self.lanes * dtype(self.element).bytes, PAGE)

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
        state = f"(char *)call->workspace + {self._state_bytes}L * worker"
        tasks = spatial(self.workers) * repeat(ceil_div(every, self.workers))
        return worker_function(
            name,
            [
                *buffer_variables(self.operands, self._names, written),
                f"vf *restrict s = (void *)({state});",
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
        """Write the walk along all steps in one row, for one group of lanes."""
        view, places = self.view, self._places
        *rows, group = at
        lines: list[str] = []
        for name, value in view.first.items():
            start, size = places.start[name], places.vectors_of(name)
            text = f"s[i + {start}] = tw_set({_constant(value)});"
            lines += C.loop("i", size, [text])
        known = {
            **dict(zip(view.rows, rows, strict=True)),
            **{axis: variable(f"d{n}") for n, axis in enumerate(view.inner)},
            view.position: variable("t"),
        }
        lane = view.extent(view.lane)
        limit = lane if lane % self.lanes else None
        first = group * (self.vectors * self.lanes)
        writer = StepWriter(view, places, self._names, known, first, self.lanes, limit, self.unroll)
        lines += writer.prepared()
        return [*lines, *C.loop("t", view.extent(view.position), writer.write())]


def _constant(value: float) -> str:
    if abs(value) == float("inf"):
        return "-__builtin_inff()" if value < 0 else "__builtin_inff()"
    return repr(value)
