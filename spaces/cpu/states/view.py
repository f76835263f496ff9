"""The part of a walk's description that all kernels with a state read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import Protocol

from tilewright.spaces.derivation.rows.addresses import Steps
from tilewright.spaces.language.program import Output, Program
from tilewright.spaces.language.tree import Expression, Read


class StateView(Protocol):
    """A program as a walk along the axis ``position``, in independent rows and along the axis
    ``lane``."""

    @property
    def program(self) -> Program:
        """The program."""

    @property
    def rows(self) -> tuple[str, ...]:
        """The axes whose points are independent of each other."""

    @property
    def position(self) -> str:
        """The axis that is walked along."""

    @property
    def lane(self) -> str:
        """The independent axis along which vectors lie."""

    @property
    def outputs(self) -> Sequence[Output]:
        """The outputs."""

    @property
    def expressions(self) -> Iterable[Expression]:
        """All expressions that kernels compute."""

    @property
    def places(self) -> Mapping[Read, Steps]:
        """The place of each read of an operand."""

    def extent(self, *axes: str) -> int:
        """Return the number of points of some axes."""


def why_no_array(view: StateView, floats: tuple[str, ...]) -> str | None:
    """Return which operand or output is of none of the dtypes ``floats``; None if none is."""
    for array in (*(view.program.operand[read.name] for read in view.places), *view.outputs):
        if array.dtype not in floats:
            return f"{array.name} is {array.dtype}; allowed: {', '.join(floats)}"
    return None
