"""The C of kernels that are called one after the other, with arrays between them.

The workspace has these arrays first, and behind them the memory that kernels need for themselves:
the same bytes for all, as none keeps anything there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from itertools import accumulate

from tilewright.spaces.algebra.integers import round_up
from tilewright.spaces.cpu.abi import PAGE
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.staged.arrays import Place, Places, between


@dataclass(frozen=True)
class StagedCode:
    """The kernel called ``entry``, which calls ``kernels``.

    ``arrays`` are its buffers in order; ``places`` locate each array of each kernel in one of
    these, or in an array between kernels.
    """

    entry: str
    arrays: Sequence[str]
    kernels: Sequence[Kernel]
    places: Places

    @property
    def source(self) -> str:
        """The C text of all kernels; the one that calls the others comes last."""
        bodies = [
            kernel.source.body.replace(kernel.call.entry, self._name(number))
            for number, kernel in enumerate(self.kernels)
        ]
        calls = [line for number in range(len(self.kernels)) for line in self._call(number)]
        lines = [
            f"void {self.entry}(",
            "    void *const *buffers, void *workspace, const tw_runtime *runtime) {",
            *(f"  {line}" for line in calls),
            "}",
        ]
        return "".join(bodies) + "\n".join(lines) + "\n"

    @property
    def workspace_bytes(self) -> int:
        """Bytes of the arrays between kernels, and the most that a kernel needs for itself."""
        return self._starts[-1] + max(kernel.call.workspace_bytes for kernel in self.kernels)

    def _name(self, number: int) -> str:
        return f"{self.entry}_{number + 1}"

    @cached_property
    def _starts(self) -> list[int]:
        """The byte offset in the workspace of each array between kernels, and of what follows."""
        return [0, *accumulate(round_up(size, PAGE) for size in self._between.values())]

    @cached_property
    def _between(self) -> Mapping[str, int]:
        return between(self.kernels, self.places, self.arrays)

    def _call(self, number: int) -> list[str]:
        call, places = self.kernels[number].call, self.places[number]
        given = ", ".join(self._buffer(places[array.name]) for array in call.arrays)
        own = f"(char *)workspace + {self._starts[-1]}"
        return [
            f"void *const given{number}[] = {{{given}}};",
            f"{self._name(number)}(given{number}, {own}, runtime);",
        ]

    def _buffer(self, place: Place) -> str:
        if place.name in self.arrays:
            buffer = f"buffers[{self.arrays.index(place.name)}]"
            return f"(char *){buffer} + {place.start}" if place.start else buffer
        start = self._starts[list(self._between).index(place.name)]
        return f"(char *)workspace + {start + place.start}"
