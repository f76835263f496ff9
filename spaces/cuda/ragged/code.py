"""The CUDA C++ of kernels over ranges: teams share rows, or rows and entries together.

The starts of all rows are given as pointers, or are found in a sorted table first; arrays to be
turned are copied first, too. If teams have
equal numbers of rows and entries, a row may be in parts: each team leaves the partial results of
its first and its last row in the workspace, and a second launch joins these (merge-path, as in
Merrill and Garland, "Merge-based parallel sparse matrix-vector multiplication", SC 2016). Which
team has what depends on the starts alone, so that results are the same in every call.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property, partial

from tilewright.spaces.algebra.index import Index, index, total
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.algebra.mapping import spatial
from tilewright.spaces.algebra.mapping_emit import only_task
from tilewright.spaces.cuda import whole_numbers
from tilewright.spaces.cuda.abi import C_TYPES, entry
from tilewright.spaces.cuda.maps.code import HELPERS
from tilewright.spaces.cuda.ragged.row import Part, RowCode
from tilewright.spaces.cuda.ragged.sizes import ENDED, PARTS, STARTS, RaggedSizes, in_order
from tilewright.spaces.cuda.ragged.walk import SEARCH, Walk
from tilewright.spaces.derivation.ragged.view import RaggedView
from tilewright.spaces.kernel import Argument, Call, Kernel, Launch, Source
from tilewright.spaces.kernels.body import Body
from tilewright.spaces.workloads.array import Array

SEARCHERS = 256
"""Threads of a block that finds where rows begin, or turns an array."""
SEARCHES = """\
template <class T> TW_INLINE int tw_within(T i, int low, int high) {
  return i < low ? low : i > high ? high : (int)i;
}
template <class T> TW_INLINE int tw_first_not_below(const T *rows, int entries, int row) {
  int first = 0, end = entries;
  while (first < end) {
    const int middle = first + (end - first) / 2;
    if (tw::load_global(rows + middle) < row) first = middle + 1; else end = middle;
  }
  return first;
}
template <int EACH, int TEAM> TW_INLINE int tw_turns(int entries) {
  int turns = (entries + EACH - 1) / EACH;
#pragma unroll
  for (int mask = TEAM; mask < 32; mask *= 2)
    turns = tw_most(turns, tw::shuffle_xor(turns, mask));
  return turns;
}
"""
"""C functions that find rows and entries. ``tw_turns`` is the most turns of the teams of a
warp."""


@dataclass(frozen=True)
class RaggedCode:
    """The kernel named ``entry``, whose arguments are ``arguments``."""

    sizes: RaggedSizes
    arguments: Sequence[Argument]
    entry: str

    def kernel(self, prelude: str) -> Kernel:
        """Return the kernel with its launches; ``prelude`` defines the functions that are
        called."""
        functions: dict[str, tuple[int, int, Callable[[Body], None]]] = {}
        blocks, threads = int(self.sizes.blocks), int(self.sizes.threads)
        for array in self.sizes.turned:
            name = f"_turn{len(functions)}"
            count = ceil_div(array.size, SEARCHERS)
            functions[name] = count, SEARCHERS, partial(self._turn, array)
        if self.sizes.finds_starts:
            count = ceil_div(self.view.rows + 1, SEARCHERS)
            functions["_starts"] = count, SEARCHERS, self._find_starts
        functions[""] = blocks, threads, self._rows
        if self.sizes.splits:
            functions["_join"] = blocks, threads, self._join
        texts = [
            entry(f"{self.entry}{name}", size, self.arguments, write, self._has_workspace)
            for name, (_, size, write) in functions.items()
        ]
        launches = tuple(
            Launch((count, 1, 1), (size, 1, 1), entry=f"{self.entry}{name}")
            for name, (count, size, _) in functions.items()
        )
        size = int(self.sizes.workspace_bytes)
        call = Call(self.entry, tuple(self.arguments), size, launches=launches)
        return Kernel(Source("cuda", prelude, self._helpers + "\n".join(texts)), call)

    @property
    def view(self) -> RaggedView:
        """The steps of a row."""
        return self.sizes.view

    @property
    def _helpers(self) -> str:
        store = "store_stream" if self.sizes.values["stores"] == "stream" else "store_global"
        return HELPERS.replace("STORE", store) + whole_numbers.HELPERS + SEARCHES + SEARCH

    # -- names ---------------------------------------------------------------------------------

    @property
    def _has_workspace(self) -> bool:
        return int(self.sizes.workspace_bytes) > 0

    @cached_property
    def _given(self) -> Mapping[str, str]:
        """The pointers to arrays as they are given."""
        return {a.array.name: f"x{n}" for n, a in enumerate(self.arguments)}

    @cached_property
    def _arrays(self) -> Mapping[str, str]:
        """The pointers to arrays as steps read them."""
        return {**self._given, **{a.name: f"({self._turned(a)})" for a in self.sizes.turned}}

    def _turned(self, array: Array, constant: str = "const ") -> str:
        place = self.sizes.places[in_order(array)]
        return f"({constant}{C_TYPES[array.dtype]} *)(workspace + {place})"

    @cached_property
    def _left(self) -> Mapping[str, str]:
        """The pointers to what steps leave."""
        names = (step.name for step in self.view.steps if step.name in self.sizes.places)
        return {name: f"r{n}" for n, name in enumerate(names)}

    @cached_property
    def _row(self) -> RowCode:
        return RowCode(self.sizes, self._arrays, self._left, self._group, self._lane)

    @property
    def _team(self) -> Index:
        return self._places[0]

    @property
    def _group(self) -> Index:
        return self._places[1]

    @property
    def _lane(self) -> Index:
        return self._places[2]

    @cached_property
    def _places(self) -> tuple[Index, ...]:
        """The team of a thread, its group there, and its lane."""
        sizes = self.sizes
        blocks = spatial(int(sizes.blocks), 1, 1)
        workers = blocks * spatial(int(sizes.block_teams), sizes.groups, sizes.lanes)
        return only_task(workers, index("worker", workers.num_workers))

    @property
    def _axis(self) -> str:
        """The variable of a row."""
        return self._row.axes[self.view.range.row].text

    @cached_property
    def _starts(self) -> str:
        """C text of the pointer to where rows begin."""
        if self.view.range.pointers:
            return self._arrays[self.view.range.table]
        return f"((const i32 *)(workspace + {self.sizes.places[STARTS]}))"

    def _start(self, row: str, low: str = "0") -> str:
        """Return C text of where a row begins, clamped so that no table leads out of arrays."""
        return f"tw_within(tw::load_global({self._starts} + {row}), {low}, {self.view.entries})"

    def _floats(self, name: str) -> str:
        return f"(float *)(workspace + {self.sizes.places[name]})"

    # -- launches ------------------------------------------------------------------------------

    def _find_starts(self, body: Body) -> None:
        """Write how each thread finds where a row begins."""
        rows, table = self.view.rows, self._arrays[self.view.range.table]
        body.let("const int", "row", f"blockIdx.x * {SEARCHERS} + threadIdx.x")
        with body.when(f"row <= {rows}"):
            found = f"tw_first_not_below({table}, {self.view.entries}, row)"
            place = f"(i32 *)(workspace + {self.sizes.places[STARTS]}) + row"
            body.call("tw::store_global", place, found)

    def _turn(self, array: Array, body: Body) -> None:
        """Write how each thread copies an element into the order in which it is turned."""
        (given,) = (a.array for a in self.arguments if a.array.name == array.name)
        number = body.let("const int", "number", f"blockIdx.x * {SEARCHERS} + threadIdx.x")
        at, axes = index(number, array.size), dict[int, Index]()
        for dimension in reversed(array.order):
            axes[dimension] = at % array.shape[dimension]
            at = at // array.shape[dimension]
        old, new = (
            total((axes[d], step) for d, step in enumerate(each.strides)) for each in (given, array)
        )
        with body.when(f"{number} < {array.size}"):
            value = f"tw::load_global({self._given[array.name]} + {old})"
            body.call("tw::store_global", f"{self._turned(array, '')} + {new}", value)

    def _rows(self, body: Body) -> None:
        """Write how teams reduce rows: whole ones, or those among their rows and entries."""
        self._place(body)
        self._declare_left(body)
        if not self.view.has_rows:
            self._chunk(body)
        elif self.sizes.splits:
            self._walk.write(body, self._tests)
        else:
            self._whole_row(body)

    def _place(self, body: Body) -> None:
        body.let("const int", "worker", f"blockIdx.x * {self.sizes.threads} + threadIdx.x")
        body.let("const int", "team", self._team)

    def _declare_left(self, body: Body) -> None:
        """Declare pointers to values of entries that steps leave."""
        for step in self.view.steps:
            if step.along:
                body.let("float *const", self._left[step.name], self._floats(step.name))

    @property
    def _is_everywhere(self) -> bool:
        """True if all teams have a task."""
        return int(self.sizes.teams) % int(self.sizes.block_teams) == 0

    @property
    def _task(self) -> str:
        """The C test that a team has a task; empty if all have one."""
        return "" if self._is_everywhere else f"team < {int(self.sizes.teams)}"

    @property
    def _tests(self) -> list[str]:
        return [self._task] * bool(self._task)

    @property
    def _walk(self) -> Walk:
        ended = f"(i32 *)(workspace + {self.sizes.places[ENDED]})"
        parts = self._floats(PARTS)
        return Walk(self.sizes, self._row, self._starts, self._start, parts, ended)

    def _join(self, body: Body) -> None:
        """Write how teams join the parts of rows."""
        self._place(body)
        self._walk.join(body, self._tests)

    def _chunk(self, body: Body) -> None:
        """Write the work of a team on entries that belong to no rows."""
        entries, items = self.view.entries, self.sizes.items
        body.let("const int", "low", f"tw_least(team * {items}, {entries})")
        body.let("const int", "high", f"tw_least(low + {items}, {entries})")
        self._row.write(body, Part("low", "high", begin="low", end="high"))

    def _whole_row(self, body: Body) -> None:
        """Write the work of a team on one row."""
        rows = self.view.rows
        row = "team" if self._is_everywhere else f"tw_least(team, {rows - 1})"
        body.let("const int", self._axis, row)
        body.let("const int", "begin", self._start(self._axis))
        end = self._start(f"{self._axis} + 1", "begin")
        body.let("const int", "end", f"{self._task} ? {end} : begin" if self._task else end)
        for step in self.view.steps:
            if not step.along and step.name in self._left:
                place = f"(i64){self._axis} * {self.sizes.row_elements(step)}"
                pointer = f"{self._floats(step.name)} + {place}"
                body.let("float *const", self._left[step.name], pointer)
        self._row.write(body, Part("begin", "end", self._task))
