"""Kernels with a bug planted into them, and what the emulator has to say of kernels."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import cached_property, wraps
from itertools import islice
from typing import ParamSpec, cast

from tests import kernels
from tilewright.measure.cuda.emulator import INTERLEAVINGS, Emulated, Emulator, verify
from tilewright.measure.cuda.emulator.verify import judged, problems
from tilewright.spaces.kernel import Kernel
from tilewright.spaces.numerics.mode import Numerics
from tilewright.spaces.workloads.workload import Workload

Case = tuple[Workload, Kernel]
P = ParamSpec("P")
SHARE = 4
"""Kernels of one template take turns with edge inputs: each runs on one in so many of them."""
LEAST_SHARE = 12
"""The same of many kernels, as long as each of the inputs still has two of them."""


class Deferred:
    """A case that is made when it is first used: each process collects all tests, and runs a third
    of them."""

    def __init__(self, make: Callable[..., Case], given: tuple[object, ...]) -> None:
        self._make = make
        self.given = given
        """Arguments by place and by name."""

    def __iter__(self) -> Iterator[Workload | Kernel]:
        return iter(self._case)

    def __getitem__(self, place: int) -> Workload | Kernel:
        return self._case[place]

    @cached_property
    def _case(self) -> Case:
        *arguments, options = self.given
        return self._make(*arguments, **options)


def deferred(make: Callable[P, Case]) -> Callable[P, Case]:
    """Have a function return a :class:`Deferred` case."""

    @wraps(make)
    def later(*arguments: P.args, **options: P.kwargs) -> Case:
        return cast(Case, Deferred(make, (*arguments, options)))

    return later


def planted(case: Case, pattern: str, replacement: str, mark: str = "bug") -> Case:
    """The case with a bug in its kernel, see :func:`tests.kernels.planted`; the ``mark`` is added
    to its entry, since kernels of one name cannot be compiled together."""
    work, kernel = case
    return work, kernels.planted(kernel, pattern, replacement, f"{kernel.call.entry}_{mark}")


def in_turn(
    emulator: Emulator,
    case: Case,
    turn: int,
    seed: int = 0,
    share: int = SHARE,
    numerics: Numerics = Numerics.STRICT,
) -> Emulated:
    """Verify a kernel in the orders and with the other inputs whose ``turn`` it is: two orders of
    four, and one in ``share`` of the inputs."""
    work, kernel = case
    every = problems(work, seed, numerics)
    result = judged(emulator, kernel, next(every), INTERLEAVINGS[turn % 2 :: 2])
    for other in islice(every, turn % share, None, share):
        if result.error_kind is not None:
            break
        result = judged(emulator, kernel, other, INTERLEAVINGS[-1:])
    return result


def share_of(kernels: int) -> int:
    """Return the ``share`` of :func:`in_turn` for each of so many kernels: the more there are, the
    fewer inputs one of them runs on."""
    return min(max(SHARE, kernels // 2), LEAST_SHARE)


def check_right(emulator: Emulator, case: Case, turn: int = 0) -> None:
    """It agrees with the reference, in any order; see :func:`in_turn`."""
    result = in_turn(emulator, case, turn)
    assert result.error_kind is None, result.error_text


def check_all_right(emulator: Emulator, cases: Sequence[Case]) -> None:
    """Each of them does, compiled together."""
    emulator.build([kernel for _, kernel in cases])
    for turn, case in enumerate(cases):
        check_right(emulator, case, turn)


def check_found(emulator: Emulator, case: Case) -> None:
    """It runs, and is found wrong."""
    result = verify(emulator, *case)
    assert result.error_kind is not None
    assert "compile" not in result.error_kind.value, result.error_text
