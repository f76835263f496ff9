"""The C of a walk along steps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

from tilewright.spaces.algebra.index import Index, variable
from tilewright.spaces.cpu.states.code import StateCode
from tilewright.spaces.cpu.stepped.places import Places
from tilewright.spaces.cpu.stepped.step import StepWriter, constant
from tilewright.spaces.derivation.stepped.view import SteppedView
from tilewright.spaces.kernels.text import C


@dataclass(frozen=True)
class SteppedCode(StateCode):
    """Its innermost loops are unrolled ``unroll`` times."""

    view: SteppedView
    unroll: int

    @cached_property
    def _places(self) -> Places:
        return Places(self.view, self.vectors)

    @property
    def _size(self) -> int:
        return self._places.size

    def _walk(self, at: Sequence[Index]) -> list[str]:
        view, places = self.view, self._places
        *rows, group = at
        lines: list[str] = []
        for name, value in view.first.items():
            start, size = places.start[name], places.vectors_of(name)
            text = f"s[i + {start}] = tw_set({constant(value)});"
            lines += C.loop("i", size, [text])
        known = {
            **dict(zip(view.rows, rows, strict=True)),
            **{axis: variable(f"d{n}") for n, axis in enumerate(view.inner)},
            view.position: variable("t"),
        }
        first = group * (self.vectors * self.lanes)
        shape = (first, self.lanes, self._limit, self.unroll)
        writer = StepWriter(view, places, self._names, known, *shape)
        lines += writer.prepared()
        return [*lines, *self._steps(writer.write())]

    def _steps(self, body: list[str]) -> list[str]:
        """Return the loop over all steps, up or down."""
        extent = self.view.extent(self.view.position)
        if self.view.direction > 0:
            return C.loop("t", extent, body)
        return C.loop("step", extent, [f"const long t = {extent - 1} - step;", *body])
