"""Extents and resources of kernels over ranges: teams of threads, and the memory between launches.

A team is a warp or a part of one. Its threads lie side by side along the columns of a row, and in
groups that share the row's entries. Sizes are integers or, element by element, NumPy arrays of
them.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np

from tilewright.spaces.algebra.integers import ceil_div, round_up
from tilewright.spaces.cuda.block_sums import BLOCK
from tilewright.spaces.cuda.target import VECTOR_BYTES
from tilewright.spaces.decided import Decided
from tilewright.spaces.derivation.ragged.view import RaggedView, Step
from tilewright.spaces.workloads.array import Array

ROWS, ENTRIES = "rows", "entries"
"""Values of the decision ``parallel_over``: teams have whole rows, or equal numbers of rows and
entries."""
ELEMENT, START = 4, 4
"""Bytes of a number between steps, and of the start of a row."""
ALIGNMENT = 256
"""Alignment in bytes of arrays in the workspace."""
STARTS, PARTS, ENDED = "starts", "parts", "ended"
"""Arrays of the workspace beside those of steps: where rows begin, the partial results of teams,
and the row whose last part a team has."""
BOOKKEEPING = 26
"""Registers of a thread that hold no elements."""


def in_order(array: Array) -> str:
    """Return the name of a turned array in the workspace, which no step has."""
    return f"{array.name} turned"


@dataclass(frozen=True)
class RaggedSizes:
    """The teams of ``view`` under the decisions ``values`` (integers or arrays). Arrays that are
    ``turned`` are copied into their order first."""

    view: RaggedView
    values: Mapping[str, Any]
    turned: Sequence[Array] = ()

    vector = Decided()
    """Columns side by side that a thread reads at once."""
    vectors = Decided()
    """Vectors of a thread."""
    lanes = Decided("column_threads")
    """Threads of a team side by side along columns."""
    groups = Decided("entry_threads")
    """Groups of a team that share entries."""
    unroll = Decided()
    """Entries that a group reads at a time."""
    threads = Decided()
    """Threads of a block."""
    items = Decided("team_items")
    """Rows and entries of a team that has as many as others."""

    @property
    def team(self) -> Any:
        """Threads of a team."""
        return self.lanes * self.groups

    @property
    def columns(self) -> Any:
        """Columns of a team at a time."""
        return self.lanes * self.vector * self.vectors

    @property
    def block_teams(self) -> Any:
        """Teams of a block."""
        return self.threads // np.minimum(self.team, self.threads)

    @property
    def splits(self) -> Any:
        """True if teams have equal numbers of rows and entries."""
        return self.values["parallel_over"] == ENTRIES

    @property
    def shared_items(self) -> int:
        """Rows and entries of all teams, of entries alone where these belong to no rows."""
        return self.view.entries + (self.view.rows if self.view.has_rows else 0)

    @property
    def teams(self) -> Any:
        """Teams with a task."""
        shared = ceil_div(self.shared_items, self.items)
        return np.where(self.splits, shared, self.view.rows) if self.view.has_rows else shared

    @property
    def blocks(self) -> Any:
        """Blocks of the grid."""
        return ceil_div(self.teams, self.block_teams)

    def block_entries(self, step: Step) -> Any:
        """Count the entries that a team adds up before it begins another sum."""
        each = BLOCK // max(1, int(np.prod(self.view.program.shape(step.inner), dtype=np.int64)))
        return self.groups * np.maximum(self.unroll, max(1, each))

    @property
    def accumulators(self) -> Any:
        """Sums of a thread."""
        return self.vector * self.vectors

    @property
    def registers(self) -> Any:
        """Registers of a thread, roughly: sums, those of blocks before, and what is read."""
        return BOOKKEEPING + self.accumulators * (3 + self.unroll) + 2 * self.unroll

    # -- memory --------------------------------------------------------------------------------

    @property
    def finds_starts(self) -> bool:
        """True if kernels must find where rows begin."""
        return self.view.has_rows and not self.view.range.pointers

    def row_elements(self, step: Step) -> int:
        """Count the elements from what a step leaves for a row, or a part of one, to the next,
        which begin where vectors may."""
        return round_up(self.view.elements(step), VECTOR_BYTES // ELEMENT)

    @cached_property
    def spaces(self) -> Mapping[str, Any]:
        """Bytes of each array of the workspace, in order."""
        view, found = self.view, dict[str, Any]()
        if self.finds_starts:
            found[STARTS] = START * (view.rows + 1)
        for array in self.turned:
            found[in_order(array)] = array.span_bytes
        for step in view.steps:
            if step.along:
                found[step.name] = ELEMENT * view.entries * view.elements(step)
            elif step.name in view.kept_steps and step.counts is None:
                found[step.name] = ELEMENT * view.rows * self.row_elements(step)
        if view.splittable is not None:
            part = ELEMENT * self.row_elements(view.splittable)
            found[PARTS] = np.where(self.splits, 2 * self.teams * part, 0)
            found[ENDED] = np.where(self.splits, START * self.teams, 0)
        return {name: round_up(size, ALIGNMENT) for name, size in found.items()}

    @property
    def places(self) -> Mapping[str, int]:
        """The byte offset of each array in the workspace of one schedule."""
        found, end = dict[str, int](), 0
        for name, size in self.spaces.items():
            found[name] = end
            end += int(size)
        return found

    @property
    def workspace_bytes(self) -> Any:
        """Bytes of the workspace."""
        return sum(self.spaces.values())
