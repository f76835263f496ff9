"""Places of the arrays of a walk along steps in a worker's part of the workspace, in vectors: of
stages, and behind them of operands that are copied before the first step."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.derivation.stepped.view import SteppedView
from tilewright.spaces.language.program import Stage
from tilewright.spaces.language.tree import Read


@dataclass(frozen=True)
class Places:
    """The places of stages whose elements are kept between loops or steps: those of the state, and
    of stages with inner axes. Each element is ``vectors`` of lanes, or one whose lanes are
    alike."""

    view: SteppedView
    vectors: int

    def width(self, stage: Stage) -> int:
        """Return the vectors of an element."""
        return self.vectors if self.view.lane in stage.axes else 1

    def is_kept(self, stage: Stage) -> bool:
        """Tell whether a stage has a place."""
        return bool(self.view.inner_of(stage.axes)) or stage.name in self.view.first

    def vectors_of(self, name: str) -> int:
        """Return the vectors of a stage at one step."""
        stage = self.view.stage[name]
        return self.view.extent(*self.view.inner_of(stage.axes)) * self.width(stage)

    @cached_property
    def start(self) -> Mapping[str, int]:
        """The first vector of each stage that has a place."""
        found, end = dict[str, int](), 0
        for stage in self.view.stages:
            if self.is_kept(stage):
                found[stage.name] = end
                end += self._size(stage)
        return found

    @cached_property
    def _stages(self) -> int:
        """The vectors of all stages."""
        return sum(self._size(stage) for stage in self.view.stages if self.is_kept(stage))

    @cached_property
    def size(self) -> int:
        """All vectors."""
        return max(1, self._stages + sum(map(self.vectors_held, self.view.held)))

    def inner_of(self, read: Read) -> tuple[str, ...]:
        """Return the inner axes of an operand that is copied."""
        return tuple(axis for axis in self.view.inner if axis in read.axes)

    def vectors_held(self, read: Read) -> int:
        """Return the vectors of an operand that is copied."""
        return self.view.extent(*self.inner_of(read)) * self.vectors

    def held(self, read: Read, point: Mapping[str, Index], vector: int) -> str:
        """Return the place of one ``vector`` of an operand that is copied, at a ``point``."""
        number = self.view.held.index(read)
        start = self._stages + sum(map(self.vectors_held, self.view.held[:number]))
        place = Index()
        for axis in self.inner_of(read):
            place = place * self.view.extent(axis) + point[axis]
        return f"s[{place * self.vectors + (vector + start)}]"

    def _size(self, stage: Stage) -> int:
        return self.vectors_of(stage.name) * (2 if self.view.is_double(stage.name) else 1)

    def at(self, name: str, point: Mapping[str, Index], vector: int, before: bool) -> str:
        """Return the place of one ``vector`` of an element, whose index along each inner axis of
        the stage is in ``point``; of the step ``before``, or of this one."""
        stage = self.view.stage[name]
        place = Index()
        for axis in self.view.inner_of(stage.axes):
            place = place * self.view.extent(axis) + point[axis]
        place = place * self.width(stage) + vector + self.start[name]
        if self.view.is_double(name):
            place = place + variable("odd" if before else "even") * self.vectors_of(name)
        return f"s[{place}]"
