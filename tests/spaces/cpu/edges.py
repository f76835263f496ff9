"""Kernels of random programs on a CPU, on inputs at the edges, within walls or not."""

from __future__ import annotations

import dataclasses
import tempfile
from collections.abc import Sequence
from itertools import product
from pathlib import Path

from tests.spaces.cpu.fenced import Beginning, Ending, apart
from tests.spaces.cpu.machine import this_cpu
from tests.spaces.cpu.native import QUICKLY, Guarded, Run, compile_apart, here, outcome
from tests.spaces.edge_cases import Judged
from tests.spaces.edge_programs import Case

TARGET = dataclasses.replace(this_cpu(), threads=3, cores=3)


@dataclasses.dataclass(frozen=True)
class Environment:
    """How kernels are compiled, where their arrays lie, and who calls them."""

    flags: tuple[str, ...] = ()
    memory: type[Guarded] = Guarded
    run: Run = here


HERE = Environment()
QUICK = Environment(QUICKLY)
TRAPS = (
    "-fsanitize=undefined", "-fsanitize-undefined-trap-on-error", "-ftrivial-auto-var-init=pattern"
)  # fmt: skip
"""Flags with which code that has no meaning in C ends its process, or shows in results: variables
without a value hold -1.7e38 throughout."""
BETWEEN_WALLS = tuple(Environment(QUICKLY, memory, apart) for memory in (Ending, Beginning))
TRAPPED = tuple(dataclasses.replace(place, flags=TRAPS) for place in BETWEEN_WALLS)


def complaints(case: Case, schedules: int, places: Sequence[Environment] = (HERE,)) -> list[str]:
    """What is wrong with kernels of a case in any of the ``places``, which have the same flags; of
    one that no template serves nothing is."""
    judged = Judged.of(case, TARGET)
    return [] if judged is None else judged_in(judged, schedules, places)


def judged_in(judged: Judged, schedules: int, places: Sequence[Environment]) -> list[str]:
    """The same of a case that is served."""
    kernels, found = judged.kernels(schedules), []
    with tempfile.TemporaryDirectory() as folder:
        libraries = compile_apart(list(kernels.values()), TARGET, Path(folder), *places[0].flags)
        built = zip(kernels.items(), libraries, strict=True)
        for ((schedule, kernel), library), place in product(built, places):
            failed, results = outcome(kernel, library, judged.given, 1, place.memory, place.run)
            failed = failed or judged.complaint(results)
            found += [f"{schedule}: {failed}"] * bool(failed)
    return found
