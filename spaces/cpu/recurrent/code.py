"""The C of a state that is carried along positions, some of them at a time."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.algebra.integers import ceil_div
from tilewright.spaces.cpu.abi import ARRAY_TYPES
from tilewright.spaces.cpu.recurrent.position import Positions, is_ahead
from tilewright.spaces.cpu.states.code import StateCode
from tilewright.spaces.derivation.recurrent.view import Recurrence
from tilewright.spaces.kernels.text import C


@dataclass(frozen=True)
class RecurrentCode(StateCode):
    """Its state has ``vectors`` of ``lanes`` at each point of the inner axes, and passes through
    ``positions`` at once."""

    view: Recurrence
    positions: int

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
    def _size(self) -> int:
        return self._state + self._scales + self._powers

    @property
    def _behind(self) -> list[str]:
        own = ARRAY_TYPES[self.element]
        return [
            *([f"vf *restrict m = s + {self._state};"] if self._scales else []),
            *([f"{own} *restrict h = (void *)(m + {self._scales});"] if self._powers else []),
        ]

    def _walk(self, at: Sequence[Index]) -> list[str]:
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
        view, extent = self.view, self.view.extent(self.view.position)
        known = {
            **dict(zip(view.rows, rows, strict=True)),
            **{axis: variable(f"d{n}") for n, axis in enumerate(view.inner)},
        }
        turns = [variable("t") + u for u in range(count)]
        if view.backwards:
            turns = [turn * -1 + (extent - 1) for turn in turns]
        at = [{**known, view.position: turn} for turn in turns]
        first = group * (self.vectors * self.lanes)
        shape = (first, self.vectors, self.lanes, self._limit)
        return Positions(view, self._names, at, *shape, self.element).write()
